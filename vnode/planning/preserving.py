"""Takes from a pod that is replaced what its policy wants to be preserved. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from vnode.api import objects
from vnode.api.objects import Object
from vnode.planning.failover import PreservedValue

LONGEST: Final = 4096
"""Bytes of a value."""
_STEP: Final = re.compile(r"\.?([A-Za-z][A-Za-z0-9]*)|\[(0|[1-9][0-9]{0,2})\]", re.ASCII)


def parse_path(text: str) -> tuple[str | int, ...] | None:
    """Return the steps of `containerStatuses[0].restartCount`; None if that is no path."""
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (match[0].startswith(".") and not position):
            return None

        steps.append(match[1] if match[1] is not None else int(match[2]))
        position = match.end()

    return tuple(steps) if steps and isinstance(steps[0], str) else None


def preserved(wanted: Iterable[PreservedValue], pod: Object) -> tuple[dict[str, str], list[str]]:
    """Return annotations for the pod that replaces this one, and those that are too long."""
    found, too_long = {}, []
    for value in wanted:
        text = _value(value, pod)
        if text is not None and len(text.encode()) > LONGEST:
            too_long.append(value.annotation)
        elif text is not None:
            found[value.annotation] = text

    return found, too_long


def _value(wanted: PreservedValue, pod: Object) -> str | None:
    if wanted.from_annotation:
        return objects.annotations(pod).get(wanted.from_annotation)

    value = _walk(objects.status(pod), wanted.from_status)
    if value is None or isinstance(value, str):
        return value

    return msgspec.json.encode(value, order="deterministic").decode()


def _walk(value: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None

    return value
