"""Finds the value that a score, a property or free capacity has for a virtual node. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from vnode.api import keys, properties, quantities, resources
from vnode.api.cluster_scores import FoundScore
from vnode.api.score_terms import FreeScope, ScoreReference, ScoreSource
from vnode.scheduling.snapshot import VirtualNodeInfo


@dataclass(frozen=True, slots=True)
class ScoreValue:
    """A value of one node at one moment."""

    amount: int | None
    """In nano-units, also that of a score; None if there is none that counts."""
    why: str = ""
    """Why there is none, for people."""
    until: datetime | None = None
    """When it ends; None: never, or there is none."""


def find(of: ScoreReference, node: VirtualNodeInfo, now: datetime) -> ScoreValue:
    """Return the value that a reference names."""
    scores = node.virtual.scores
    match of.source:
        case ScoreSource.ADD_ON:
            return _score(scores.of_add_on(of.resource, of.name, now))
        case ScoreSource.CLUSTER_SCORE:
            return _score(scores.of_own(of.name, now))
        case ScoreSource.PROPERTY:
            return _property(of, node)
        case _:
            return _free(of, node)


def _score(found: FoundScore) -> ScoreValue:
    amount = None if found.value is None else found.value * quantities.NANO
    return ScoreValue(amount, found.why, found.until)


def _property(of: ScoreReference, node: VirtualNodeInfo) -> ScoreValue:
    key = keys.CLUSTER_PROPERTY + of.name.replace("/", "_")
    amount = properties.amount_of(node.labels.get(key))
    if amount is not None:
        return ScoreValue(amount)

    state = "is no quantity" if key in node.labels else "is missing"
    return ScoreValue(None, f"{of.text} {state}")


def _free(of: ScoreReference, node: VirtualNodeInfo) -> ScoreValue:
    known = node.largest if of.scope is FreeScope.NODE else node.known_free()
    if known is None:
        return ScoreValue(None, f"{of.text} is not known: the target does not say it")

    unit = quantities.NANO // 1000 if of.name == resources.CPU else quantities.NANO
    return ScoreValue(max(0, known.get(of.name, 0)) * unit)
