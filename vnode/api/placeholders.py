"""Reads the placeholders of a proxy pod: candidates that outlive its binding, to wait for room.

The annotation on the proxy is the one record of them. It comes with the binding, so that there is
no moment at which somebody could take them for candidates that have lost (docs/decisions/0046).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from vnode.api import keys, names, objects, scheduled_condition
from vnode.api.objects import Object

MOST: Final = 100  # of one pod: users can write the annotation, too
LONGEST: Final = MOST * (names.NAME_LIMIT + 1)
"""Characters of the annotation that are read: enough for so many names."""
_KEPT: Final = 128  # texts and what they say


def of(proxy: Object) -> tuple[str, ...]:
    """Return the virtual nodes where a pod that is bound elsewhere has placeholders.

    A pod that ends has none, nor one that is not bound.
    """
    text = objects.annotations(proxy).get(keys.PLACEHOLDERS)
    if not text or objects.is_terminating(proxy) or objects.is_finished(proxy):
        return ()

    node = objects.node_name(proxy)
    return tuple(name for name in _named(text[:LONGEST]) if name != node)[:MOST] if node else ()


@lru_cache(maxsize=_KEPT)  # each change of a pod has it read several times
def _named(text: str) -> tuple[str, ...]:
    """Return the first names of the annotation: one more than count, as the pod's own does not."""
    first = text.split(",", MOST + 1)[: MOST + 1]
    return tuple(dict.fromkeys(name for name in first if name))


def text(nodes: Iterable[str]) -> str | None:
    """Return the annotation's value for a patch; None if there is to be none."""
    return ",".join(nodes) or None


def could_start(chaperon: Object) -> bool | None:
    """Tell whether a target has room for a placeholder; None if it says nothing about that."""
    annotations = objects.annotations(chaperon)
    if objects.is_terminating(chaperon) or keys.POD_MISSING_SINCE in annotations:
        return False

    if keys.IS_RESERVED in annotations:
        return True

    if scheduled_condition.rejection(objects.status(chaperon)) is not None:
        return False

    message = str((objects.condition(chaperon, "PodScheduled") or {}).get("message", ""))
    return True if keys.COULD_START in message else None
