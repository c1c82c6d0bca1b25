"""Builds conditions of our own objects' status, by the conventions of Kubernetes. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from vnode.api import objects, visible
from vnode.api.objects import Object, Objects

READY: Final = "Ready"


def build(obj: Object, type_: str, holds: bool, reason: str, message: str, now: datetime) -> Object:
    """Build a condition of `obj`; its transition time moves only if the status does."""
    status = "True" if holds else "False"
    known = objects.condition(obj, type_) or {}
    moved = known.get("status") != status
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": visible.line(message),
        "lastTransitionTime": objects.timestamp(now) if moved else known["lastTransitionTime"],
        "observedGeneration": objects.metadata(obj).get("generation", 0),
    }


def ready(obj: Object, conditions: Objects, now: datetime) -> Object:
    """Build the condition Ready of an object that has others: the first of them that is False.

    Tools that know nothing of the others go by it. If all hold it says what the first one says.
    """
    found = next((each for each in conditions if each["status"] == "False"), conditions[0])
    holds = found["status"] != "False"
    return build(obj, READY, holds, found["reason"], found["message"], now)


def merged(obj: Object, *conditions: Object) -> Objects | None:
    """Return the object's conditions with these in them; None if that changes nothing."""
    known: Objects = objects.status(obj).get("conditions") or []
    if all(condition in known for condition in conditions):
        return None

    types = {condition["type"] for condition in conditions}
    return [*(entry for entry in known if entry.get("type") not in types), *conditions]


def turned(obj: Object, condition: Object) -> bool:
    """Tell whether the condition has another status or reason than the one that `obj` has."""
    known = objects.condition(obj, condition["type"]) or {}
    return any(known.get(field) != condition[field] for field in ("status", "reason"))


def turned_unless(repeating: str) -> Callable[[Object, Object], bool]:
    """Return `turned` for objects whose condition of that type repeats what another one says."""
    return lambda obj, condition: condition["type"] != repeating and turned(obj, condition)
