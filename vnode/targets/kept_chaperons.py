"""Says what a source keeps of its chaperons in a target: one for each of its pods."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from vnode.api import changeable, keys, objects
from vnode.api.objects import Object

SHARED: Final = 32 * 1024
"""Characters of rules that are shared: agents write no more, and targets could fill the memory."""


def trim_chaperon(chaperon: Object) -> Object:
    """Drop the immutable part of the spec, which the source wrote itself.

    The rules of policies are the same text for all pods of an owner, and kept once.
    """
    trimmed = {**chaperon, "spec": changeable.trim(objects.spec(chaperon))}
    annotations = objects.annotations(chaperon)
    rules = annotations.get(keys.OVERRIDES)
    if isinstance(rules, str) and len(rules) <= SHARED:
        shared = {**annotations, keys.OVERRIDES: _shared(rules)}
        trimmed["metadata"] = {**objects.metadata(chaperon), "annotations": shared}

    return trimmed


@lru_cache(maxsize=256)
def _shared(text: str) -> str:
    """Return the first of all equal texts."""
    return text
