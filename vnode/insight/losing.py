"""Tells what becomes of a pod whose target is not ready, and when. Pure.

The agent counts from the moment in the Target's condition, so that people can read the same.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from vnode.api import objects
from vnode.api.objects import Object, Objects
from vnode.insight import policies, status_text
from vnode.placement.failover import deciding
from vnode.planning.policy import Policy


def fate(pod: Object, ready: Object, known: Objects, now: datetime) -> str:
    """Return what happens to a bound pod; `ready` is the condition Connected of its Target.

    `known` are the placement policies that may be for the pod. "" if nothing can be said.
    """
    since = objects.parse_timestamp(str(ready.get("lastTransitionTime") or ""))
    if ready.get("status") != "False" or since is None or since.tzinfo is None:
        return ""

    plan = policies.of_pod(known, pod)
    shown = plan.policy if plan is not None else None
    policy = shown.policy if shown is not None and shown.is_accepted else None

    def of(_pod: Object) -> Policy | None:
        return policy

    lost = f"the target has been lost since {objects.timestamp(since)}"
    eviction = deciding.eviction(pod, of)
    if eviction is None:
        return f"{lost}; the pod stays bound to it, as {_reason(policy)}"

    left = timedelta(seconds=eviction.after) - (now - since)
    by = eviction.policy.name if eviction.policy else "its tolerations"
    if left <= timedelta():
        return f"{lost}, for longer than {eviction.after:.0f} s: the pod is replaced, by {by}"

    when = status_text.duration(left)
    return f"{lost}; the pod is replaced in {when}, after {eviction.after:.0f} s, by {by}"


def _reason(policy: Policy | None) -> str:
    is_failover = policy is not None and policy.failover is not None
    return f"{policy.name} says" if policy and is_failover else "it tolerates that without an end"
