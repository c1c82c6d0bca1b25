"""Builds status conditions of Targets and Sources, by the conventions of Kubernetes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import objects, status_conditions
from vnode.api.errors import MESSAGE_LIMIT
from vnode.api.objects import Object
from vnode.api.status_conditions import build

READY: Final = status_conditions.READY
CONNECTED: Final = "Connected"
"""What it says, Ready says as well."""
CLUSTER_NAME_UNIQUE: Final = "ClusterNameUnique"
CREDENTIALS_LAST: Final = "CredentialsLast"
AGENT: Final = "Agent"
CONTROL_PLANE_HEALTHY: Final = "ControlPlaneHealthy"
SELF_TARGET_ALLOWED: Final = "SelfTargetAllowed"
NODE_POOLS_VALID: Final = "NodePoolsValid"
RUNS: Final = "the target runs vnode "
"""How the message of the condition Agent begins, before the version."""

_REASON_LIMIT: Final = 128  # characters


def ready(obj: Object, healthy: bool, reason: str, message: str, now: datetime) -> Object:
    """Build the Ready condition of `obj`."""
    return build(obj, READY, healthy, reason, message, now)


def connected(target: Object, healthy: bool, reason: str, message: str, now: datetime) -> Object:
    """Build the condition Connected of a Target: the clock of what is done once it is lost.

    Earlier versions had that in Ready, from which its time is taken over.
    """
    built, earlier = build(target, CONNECTED, healthy, reason, message, now), recorded(target)
    if earlier is None or earlier.get("status") != built["status"]:
        return built

    return {**built, "lastTransitionTime": earlier["lastTransitionTime"]}


def recorded(target: Object) -> Object | None:
    """Return the condition of a Target that says whether it is connected."""
    return objects.condition(target, CONNECTED) or objects.condition(target, READY)


def control_plane(target: Object, reported: Object | None, now: datetime) -> Object | None:
    """Build the condition of a Target about what its inventory says of the control plane.

    None if it says nothing, and never has. Whether the Target is Ready, our own probe decides.
    """
    if reported is None or reported.get("status") not in ("True", "False"):
        known = objects.condition(target, CONTROL_PLANE_HEALTHY)
        if known is None:
            return None

        text = "the inventory does not say whether the control plane works"
        built = build(target, CONTROL_PLANE_HEALTHY, False, "Unknown", text, now)
        moved = known.get("status") != "Unknown"
        since = objects.timestamp(now) if moved else known["lastTransitionTime"]
        return {**built, "status": "Unknown", "lastTransitionTime": since}

    holds = reported["status"] == "True"
    message = str(reported.get("message") or "")[:MESSAGE_LIMIT]
    reason = str(reported.get("reason") or "Unknown")
    text = f"the inventory says: {message}" if message else "reported by the inventory"
    return build(target, CONTROL_PLANE_HEALTHY, holds, reason[:_REASON_LIMIT], text, now)


def agent_version(target: Object) -> str:
    """Return the version of the target's agent, by the condition Agent; "" if it has none."""
    message = str((objects.condition(target, AGENT) or {}).get("message", ""))
    return message.removeprefix(RUNS) if message.startswith(RUNS) else ""
