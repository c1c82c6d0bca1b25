"""Bounds what travels of a pod: API servers bound little but the size of the whole pod. Pure.

A pod of 1.5 MiB may have a hundred thousand labels, which are renamed each time that the pod is
compared with its chaperon. What is within these bounds takes a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from vnode.api import constraint_size, objects, service_tokens
from vnode.api.errors import ConfigError
from vnode.api.objects import Object

MOST: Final = 5_000
"""Labels of a pod, and annotations; honest ones have some dozens."""
_PARTS: Final = 10_000  # fields and entries of affinity and spread constraints
_TOKENS: Final = 500
_SELECTING: Final = ("affinity", "topologySpreadConstraints")


def is_small(entries: Sized) -> bool:
    """Tell whether there are so few labels or annotations that each may be looked at."""
    return len(entries) <= MOST


def check_metadata(pod: Object) -> None:
    """Raise ConfigError if a pod has too many labels or annotations."""
    for what, entries in (("labels", objects.labels), ("annotations", objects.annotations)):
        if not is_small(found := entries(pod)):
            raise ConfigError(f"the pod has {len(found)} {what}: use {MOST} at most")


def check(pod: Object) -> None:
    """Raise ConfigError, with the cure, if a pod has too much to travel."""
    check_metadata(pod)
    spec = objects.spec(pod)
    if not constraint_size.has_at_most(_PARTS, [spec.get(field) for field in _SELECTING]):
        raise ConfigError(
            f"the pod's affinity and topology spread constraints have over {_PARTS} fields and "
            "values: use that at most"
        )

    volumes = spec.get("volumes") or ()
    if (count := sum(len(list(service_tokens.projected(each))) for each in volumes)) > _TOKENS:
        raise ConfigError(
            f"the pod's volumes have {count} tokens of its service account: use {_TOKENS} at most"
        )
