"""Decodes what a policy says of moves, and the amounts and durations in it, strictly.

`decoding` reads the rest of a policy. Each error names the field, and the cure.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

import msgspec

from vnode.api import objects
from vnode.api.durations import seconds
from vnode.api.errors import ConfigError
from vnode.planning.move_policy import (
    Drain,
    Failback,
    FailbackMode,
    IntOrPercent,
    RescheduleTrigger,
)

MOST_REPLICAS: Final = 1_000_000
_MOST_MOVES: Final = 1000
_PORTION: Final = re.compile(r"(?:([1-9][0-9]?|100)%)|([1-9][0-9]{0,2}|1000)", re.ASCII)

Replicas = Annotated[int, msgspec.Meta(ge=0, le=MOST_REPLICAS)]


class PolicySpecPart(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """A part of a policy's spec."""


class FailbackSpec(PolicySpecPart, frozen=True):
    """`failback` of a policy."""

    mode: FailbackMode | None = None
    stabilization: str | None = None
    max_concurrent: int | str = 1


class DrainSpec(PolicySpecPart, frozen=True):
    """An entry of `drain`."""

    cluster: str
    max_replicas: Replicas = 0
    until: str = ""


class RescheduleSpec(PolicySpecPart, frozen=True):
    """`reschedule` of a policy."""

    when: tuple[RescheduleTrigger, ...] = ()


def failback(spec: FailbackSpec) -> Failback:
    """Return what `failback` says. Raises ConfigError."""
    where, stabilization = "spec.failback", spec.stabilization
    return Failback(
        spec.mode or FailbackMode.PLACEHOLDER,
        None if stabilization is None else seconds(stabilization, f"{where}.stabilization"),
        portion(spec.max_concurrent, f"{where}.maxConcurrent"),
    )


def drains(spec: tuple[DrainSpec, ...]) -> tuple[Drain, ...]:
    """Return what `drain` says. Raises ConfigError."""
    found = dict[str, Drain]()
    for number, drain in enumerate(spec):
        where = f"spec.drain[{number}]"
        if not drain.cluster or drain.cluster in found:
            why = f"an earlier entry is for {drain.cluster}" if drain.cluster else 'cluster is ""'
            raise ConfigError(f"{where}: {why}: leave one out")

        until = objects.parse_timestamp(drain.until) if drain.until else None
        if drain.until and (until is None or until.tzinfo is None):
            raise ConfigError(
                f'{where}.until: "{drain.until[:32]}" is no moment: write 2026-01-31T12:00:00Z'
            )

        moment = until.timestamp() if until else None
        found[drain.cluster] = Drain(drain.cluster, drain.max_replicas, moment)

    return tuple(found.values())


def portion(value: int | str, where: str) -> IntOrPercent:
    """Return what `3` or `10%` is. Raises ConfigError."""
    text = str(value)
    match = _PORTION.fullmatch(text)
    if match is None:
        raise ConfigError(
            f'{where}: "{text[:32]}" is no number from 1 to {_MOST_MOVES} and no percentage: '
            "write 2, or 10%"
        )

    return IntOrPercent(int(match[1] or match[2]), match[1] is not None)
