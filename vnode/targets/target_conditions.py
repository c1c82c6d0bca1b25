"""Builds the conditions of a Target that tell what its connection and its annotations show."""

from __future__ import annotations

from datetime import datetime

from vnode.api import cures, keys, node_pools, objects, scheduler_silence
from vnode.api.errors import MESSAGE_LIMIT, ConfigError
from vnode.api.objects import Object
from vnode.api.status_conditions import build
from vnode.runtime.link import Link
from vnode.runtime.start_record import StartObstacle
from vnode.targets.conditions import (
    AGENT,
    NODE_POOLS_VALID,
    RUNS,
    SELF_TARGET_ALLOWED,
    connected,
    ready,
)


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


def agent(target: Object, link: Link, now: datetime) -> Object | None:
    """Build the condition of a Target about what its cluster runs; None while that is unknown."""
    if link.summary is None:
        return None

    version = objects.annotations(link.summary).get(keys.AGENT_VERSION)
    if link.runs_vnode:
        return build(target, AGENT, True, "Vnode", f"{RUNS}{version}", now)

    if not version:
        text = "the target's agent is not vnode's: changes of running pods do not go there"
        return build(target, AGENT, False, "NotVnode", text, now)

    text = (
        f"vnode {version} has sent no heartbeat for minutes: it does not run, or Admiralty has "
        "replaced it; until it does, the target is taken for one that runs Admiralty"
    )
    return build(target, AGENT, False, "Silent", text, now)


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
