"""Builds status conditions of Targets and Sources, by the conventions of Kubernetes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import cures, keys, node_pools, objects, scheduler_silence, status_conditions
from vnode.api.errors import MESSAGE_LIMIT, ConfigError
from vnode.api.objects import Object
from vnode.api.status_conditions import build
from vnode.runtime.links import Link
from vnode.runtime.start_record import StartObstacle

READY: Final = status_conditions.READY
CONNECTED: Final = "Connected"
"""What it says, Ready says as well."""
CLUSTER_NAME_UNIQUE: Final = "ClusterNameUnique"
CREDENTIALS_LAST: Final = "CredentialsLast"
AGENT: Final = "Agent"
CONTROL_PLANE_HEALTHY: Final = "ControlPlaneHealthy"
SELF_TARGET_ALLOWED: Final = "SelfTargetAllowed"
NODE_POOLS_VALID: Final = "NodePoolsValid"


_REASON_LIMIT: Final = 128  # characters
_RUNS: Final = "the target runs vnode "


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


def link_condition(target: Object, link: Link, now: datetime) -> Object:
    """Build the condition Connected of a Target: its link's health, or the failure of a task."""
    health = link.health
    if health.healthy and link.failure:
        return connected(target, False, "Failing", link.failure, now)

    return connected(target, health.healthy, health.reason, health.message, now)


def link_ready(target: Object, link: Link, now: datetime, monotonic: float) -> Object:
    """Build the Ready condition of a Target: it is connected, and a pod would start there."""
    found = link_condition(target, link, now)
    is_connected, reason, message = found["status"] == "True", found["reason"], found["message"]
    obstacle = _obstacle(link, monotonic) if is_connected else None
    if obstacle is not None:
        return ready(target, False, *obstacle, now)

    return ready(target, is_connected, reason, message, now)


def _obstacle(link: Link, monotonic: float) -> StartObstacle | None:
    """Return why no pod would start in a target that answers; None if nothing shows that."""
    if found := link.starts.obstacle(monotonic):
        return found

    if (since := link.scheduler_silent_since) and not link.starts.is_shown:
        text = (
            f"{scheduler_silence.described(since)}, and no pod has found a place there since: "
            f"{scheduler_silence.CURE}; pods that run there are not affected"
        )
        return StartObstacle(scheduler_silence.REASON, text)

    named = keys.AGENT_VERSION in objects.annotations(link.summary or {})
    if named and not link.runs_vnode and not link.starts.is_shown:
        text = (
            "the target's vnode has sent no heartbeat for minutes, and no pod has found a place "
            "there since: start it (vnode doctor --target FILE); pods that run there are not "
            "affected"
        )
        return StartObstacle("AgentSilent", text)

    return None


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


def agent(target: Object, link: Link, now: datetime) -> Object | None:
    """Build the condition of a Target about what its cluster runs; None while that is unknown."""
    if link.summary is None:
        return None

    version = objects.annotations(link.summary).get(keys.AGENT_VERSION)
    if link.runs_vnode:
        return build(target, AGENT, True, "Vnode", f"{_RUNS}{version}", now)

    if not version:
        text = "the target's agent is not vnode's: changes of running pods do not go there"
        return build(target, AGENT, False, "NotVnode", text, now)

    text = (
        f"vnode {version} has sent no heartbeat for minutes: it does not run, or Admiralty has "
        "replaced it; until it does, the target is taken for one that runs Admiralty"
    )
    return build(target, AGENT, False, "Silent", text, now)


def agent_version(target: Object) -> str:
    """Return the version of the target's agent, by the condition of `agent`; "" if it has none."""
    message = str((objects.condition(target, AGENT) or {}).get("message", ""))
    return message.removeprefix(_RUNS) if message.startswith(_RUNS) else ""


def pools(target: Object, now: datetime) -> Object | None:
    """Build the condition of a Target about the node pools that it names; None if it never did."""
    text = objects.annotations(target).get(keys.NODE_POOLS, "")
    if not text and objects.condition(target, NODE_POOLS_VALID) is None:
        return None

    try:
        count = len(node_pools.parse(text))
    except ConfigError as error:
        message = f"no node pools are known: {error}"[:MESSAGE_LIMIT]
        return build(target, NODE_POOLS_VALID, False, "Invalid", message, now)

    return build(target, NODE_POOLS_VALID, True, "Parsed", f"node pools: {count}", now)


def self_target(target: Object, link: Link, now: datetime) -> Object | None:
    """Build the condition of a Target that is this cluster about the agent's rights in it.

    None while they are not known, and of all other Targets.
    """
    lacking = link.lacking_rights
    if lacking is None:
        return None

    if not lacking:
        text = "the agent may do here what a Source would allow"
        return build(target, SELF_TARGET_ALLOWED, True, "Allowed", text, now)

    text = (
        f"the agent of this cluster may not {', '.join(lacking)} here: pods run, but have no logs, "
        "no exec and no usage, and quotas are not looked at before a pod is placed; "
        f"{cures.SELF_TARGETS}, as an administrator"
    )
    return build(target, SELF_TARGET_ALLOWED, False, "NotAllowed", text, now)
