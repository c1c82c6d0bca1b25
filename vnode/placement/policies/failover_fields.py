"""Decodes what a policy says of clusters that are lost, strictly; errors name the field."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from vnode.api import keys, names
from vnode.api.errors import ConfigError
from vnode.placement.policies.move_fields import PolicySpecPart
from vnode.planning import preserving
from vnode.planning.failover import LONGEST_GRACE, Failover, PreservedValue, Purge

_DEFAULT: Final = Failover()

_Seconds = Annotated[int, msgspec.Meta(ge=0, le=LONGEST_GRACE)]


class PreserveSpec(PolicySpecPart, frozen=True):
    """An entry of `failover.preserve`."""

    annotation: str
    from_annotation: str = ""
    from_status: str = ""


class FailoverSpec(PolicySpecPart, frozen=True):
    """`failover` of a policy."""

    toleration_seconds: _Seconds | None = None
    purge: Purge = Purge.GRACEFUL
    grace_period_seconds: _Seconds | None = None
    max_evictions_per_minute: Annotated[int, msgspec.Meta(ge=1, le=6000)] | None = None
    preserve: Annotated[tuple[PreserveSpec, ...], msgspec.Meta(max_length=16)] = ()


def failover(spec: FailoverSpec | None) -> Failover | None:
    """Return what `failover` says. Raises ConfigError."""
    if spec is None:
        return None

    where, purge = "spec.failover", spec.purge.value
    if spec.purge is Purge.IMMEDIATE and spec.grace_period_seconds is not None:
        raise ConfigError(
            f"{where}.gracePeriodSeconds means nothing with purge {purge}: leave it out, or choose "
            "Graceful"
        )

    unused = (spec.toleration_seconds, spec.max_evictions_per_minute)
    if spec.purge is Purge.NEVER and unused != (None, None):
        field = "maxEvictionsPerMinute" if unused[0] is None else "tolerationSeconds"
        raise ConfigError(
            f"{where}.{field} means nothing with purge {purge}: leave it out, or choose Graceful "
            "or Immediate"
        )

    toleration, grace = spec.toleration_seconds, spec.grace_period_seconds
    return Failover(
        _DEFAULT.toleration if toleration is None else float(toleration),
        spec.purge,
        _DEFAULT.grace if grace is None else float(grace),
        spec.max_evictions_per_minute,
        _preserve(spec.preserve),
    )


def _preserve(entries: tuple[PreserveSpec, ...]) -> tuple[PreservedValue, ...]:
    found = dict[str, PreservedValue]()
    for number, entry in enumerate(entries):
        where = f"spec.failover.preserve[{number}]"
        if entry.annotation in found:
            raise ConfigError(f"{where}: an earlier entry is for {entry.annotation}: leave one out")

        if not _is_key(entry.annotation):
            raise ConfigError(f"{where}.annotation: no name of an annotation: write example.com/x")

        if not keys.travels(entry.annotation):
            raise ConfigError(f"{where}.annotation: targets do not get it: choose another one")

        if bool(entry.from_annotation) is bool(entry.from_status):
            raise ConfigError(f"{where}: give exactly one of fromAnnotation and fromStatus")

        path = preserving.parse_path(entry.from_status) if entry.from_status else ()
        if path is None:
            raise ConfigError(
                f"{where}.fromStatus is no path: write containerStatuses[0].restartCount"
            )

        found[entry.annotation] = PreservedValue(entry.annotation, entry.from_annotation, path)

    return tuple(found.values())


def _is_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    is_name = names.LABEL_VALUE.fullmatch(name) is not None
    return is_name and (not slash or names.SUBDOMAIN.fullmatch(prefix) is not None)
