"""Finds misspelt elections on a pod, and values of annotations that are not read. Pure.

An unknown annotation is no error to Kubernetes: the pod runs, in the wrong cluster. So the webhook
warns where it can, and `vnode explain` shows it for a pod that was not elected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object

_NEAR: Final = 0.93  # of 1; one or two letters, or another ending of the domain
_WORD: Final = keys.ELECT.removeprefix(keys.PREFIX)
_NEGATIONS: Final = frozenset({"false", "no", "off", "0", "none", "never", "disabled"})
_BY_PRESENCE: Final = (
    keys.ELECT,
    keys.NO_ELECT,
    keys.NO_RESERVATION,
    keys.USE_SPEC_CONSTRAINTS,
    keys.FORWARD,
)


def meant_as_election(pod: Object) -> str:
    """Return what on a pod looks as if it were to elect it but does not; "" if nothing does."""
    annotations, labels = objects.annotations(pod), objects.labels(pod)
    if keys.ELECT in annotations:
        return ""

    if keys.ELECT in labels:
        return f"{keys.ELECT} is a label of it, and must be an annotation"

    found = next((key for key in (*annotations, *labels) if _is_near(key)), "")
    return f"it has {found[:100]}, and the annotation is {keys.ELECT}" if found else ""


def warnings(pod: Object, *, elected: bool) -> Iterator[str]:
    """Yield warnings to a user who creates the pod: one line each."""
    if not elected and (meant := meant_as_election(pod)):
        yield f"the pod is not elected: {meant}"

    for key, value in objects.annotations(pod).items():
        if key in _BY_PRESENCE and value.strip().lower() in _NEGATIONS:
            yield f"annotation {key}: its value {value.strip()!r} is not read; take it off instead"


def _is_near(key: str) -> bool:
    domain, _slash, word = key.rpartition("/")
    return (bool(domain) and word == _WORD) or bool(
        difflib.get_close_matches(key[:100], (keys.ELECT,), cutoff=_NEAR)
    )
