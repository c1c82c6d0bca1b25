"""Fills the cells of TargetSets that depend on more than one field. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.targetsets import reporting
from vnode.targetsets.spec import RemovalPolicy

_NAMED: Final = 5  # Targets in one cell
_GOING: Final = frozenset({reporting.PROFILE_GONE, reporting.CORDONED, reporting.DRAINING})


def policy(obj: Object) -> str:
    """Return what becomes of a Target whose profile goes."""
    removal = objects.spec(obj).get("removal") or {}
    return str(removal.get("policy") or RemovalPolicy.DRAIN.value)


def held(obj: Object) -> str:
    """Return why removals are held, "No" if they are not; "" before an agent has said so."""
    condition = objects.condition(obj, reporting.HELD) or {}
    if condition.get("status") != "False":
        return str(condition.get("reason", ""))

    return "No"


def targets(obj: Object) -> str:
    """Return the Targets that are not ready, or go, with the reasons, and how many others are."""
    listed = objects.status(obj).get("targets") or ()
    wrong = [entry for entry in listed if not entry["ready"] or entry["reason"] in _GOING]
    parts = [f"{entry['name']}: {entry['reason']}" for entry in wrong[:_NAMED]]
    if len(wrong) > _NAMED:
        parts.append(f"{len(wrong) - _NAMED} more")

    if ready := len(listed) - len(wrong):
        parts.append(f"{ready} ready")

    first = f" (of the first {len(listed)})" if len(listed) >= reporting.MOST_LISTED else ""
    return ", ".join(parts) + first


def message(obj: Object) -> str:
    """Return why removals are held, and the cure; else how the set's Targets are."""
    type_ = reporting.HELD if reporting.is_held(obj) else reporting.READY
    return str((objects.condition(obj, type_) or {}).get("message", ""))
