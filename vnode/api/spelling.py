"""Finds misspelt elections on a pod, and values of annotations that are not read. Pure.

An unknown annotation is no error to Kubernetes: the pod runs, in the wrong cluster. So the webhook
warns where it can, and `vnode explain` shows it for a pod that was not elected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from vnode.api import keys, objects
from vnode.api.objects import Object

_NEAR: Final = 0.93  # of 1; one or two letters, or another ending of the domain
_LONGER: Final = 5  # characters; a key that is so much longer, or shorter, is not near
MOST_COMPARED: Final = 100
"""Keys of about the right length that are compared letter by letter; pods have one or two."""
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

    found = _nearest([*annotations, *labels])
    return f"it has {found[:100]}, and the annotation is {keys.ELECT}" if found else ""


def warnings(pod: Object, *, elected: bool) -> Iterator[str]:
    """Yield warnings to a user who creates the pod: one line each."""
    if not elected and (meant := meant_as_election(pod)):
        yield f"the pod is not elected: {meant}"

    for key, value in objects.annotations(pod).items():
        if key in _BY_PRESENCE and value.strip().lower() in _NEGATIONS:
            yield f"annotation {key}: its value {value.strip()!r} is not read; take it off instead"


def _nearest(present: Sequence[str]) -> str:
    """Return the first key that looks like that of the annotation, "" if none does."""
    if same := next(filter(_is_same_word, present), ""):
        return same

    return next(filter(_is_near, islice(filter(_is_as_long, present), MOST_COMPARED)), "")


def _is_same_word(key: str) -> bool:
    domain, _slash, word = key.rpartition("/")
    return bool(domain) and word == _WORD


def _is_as_long(key: str) -> bool:
    return abs(len(key) - len(keys.ELECT)) < _LONGER


def _is_near(key: str) -> bool:
    return bool(difflib.get_close_matches(key, (keys.ELECT,), cutoff=_NEAR))
