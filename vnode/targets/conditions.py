"""Builds status conditions of Targets and Sources, by the conventions of Kubernetes."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from vnode.api import keys, objects, visible
from vnode.api.objects import Object, Objects
from vnode.runtime.links import Link

READY: Final = "Ready"
CLUSTER_NAME_UNIQUE: Final = "ClusterNameUnique"
CREDENTIALS_LAST: Final = "CredentialsLast"
AGENT: Final = "Agent"


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


def ready(obj: Object, healthy: bool, reason: str, message: str, now: datetime) -> Object:
    """Build the Ready condition of `obj`."""
    return build(obj, READY, healthy, reason, message, now)


def link_condition(target: Object, link: Link, now: datetime) -> Object:
    """Build the Ready condition of a Target: its link's health, or the failure of a task."""
    health = link.health
    if health.healthy and link.failure:
        return ready(target, False, "Failing", link.failure, now)

    return ready(target, health.healthy, health.reason, health.message, now)


def agent(target: Object, link: Link, now: datetime) -> Object | None:
    """Build the condition of a Target about what its cluster runs; None while that is unknown."""
    if link.summary is None:
        return None

    version = objects.annotations(link.summary).get(keys.AGENT_VERSION)
    if link.runs_vnode:
        return build(target, AGENT, True, "Vnode", f"the target runs vnode {version}", now)

    if not version:
        text = "the target's agent is not vnode's: changes of running pods do not go there"
        return build(target, AGENT, False, "NotVnode", text, now)

    text = (
        f"vnode {version} has given no sign of life for minutes: it does not run, or Admiralty has "
        "replaced it; until it does, the target is taken for one that runs Admiralty"
    )
    return build(target, AGENT, False, "Silent", text, now)


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
