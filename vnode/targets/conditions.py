"""Status conditions of Targets and Sources, by the conventions of Kubernetes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object, Objects

READY: Final = "Ready"


def ready(obj: Object, healthy: bool, reason: str, message: str, now: datetime) -> Object:
    """The Ready condition of `obj`; its transition time moves only if the status does."""
    status = "True" if healthy else "False"
    known = objects.condition(obj, READY) or {}
    moved = known.get("status") != status
    return {
        "type": READY,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": objects.timestamp(now) if moved else known["lastTransitionTime"],
        "observedGeneration": objects.metadata(obj).get("generation", 0),
    }


def merged(obj: Object, condition: Object) -> Objects | None:
    """The object's conditions with this one in them; None if that changes nothing."""
    known: Objects = objects.status(obj).get("conditions") or []
    if condition in known:
        return None

    return [*(entry for entry in known if entry.get("type") != condition["type"]), condition]
