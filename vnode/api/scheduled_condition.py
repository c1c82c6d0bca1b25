"""Reads and builds the condition PodScheduled, by which schedulers refuse pods. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import visible
from vnode.api.objects import Object

UNSCHEDULABLE: Final = "Unschedulable"
_LONGEST: Final = 8192  # characters of a scheduler's message; users are shown 1,024
_REJECTIONS: Final = (UNSCHEDULABLE, "SchedulingGated")


def rejection(status: Object) -> str | None:
    """Return why the target's scheduler rejects a pod of that status; None if it does not."""
    for entry in status.get("conditions") or ():
        if entry.get("type") == "PodScheduled" and entry.get("status") == "False":
            message = visible.line(str(entry.get("message", ""))[:_LONGEST])
            return message if entry.get("reason") in _REJECTIONS else None

    return None


def rejected(message: str, since: str | None = None) -> Object:
    """Build the condition that `rejection` reads, to refuse a pod where no scheduler does."""
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": UNSCHEDULABLE,
        "message": visible.line(message),
    }
    return {**condition, "lastTransitionTime": since} if since else condition
