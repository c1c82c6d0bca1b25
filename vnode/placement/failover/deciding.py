"""Decides which pods of a lost cluster are to be replaced, and when. Pure.

That a cluster is lost, Kubernetes says by a NoExecute taint of its virtual node, which has the time
since when. Pods of which the webhook has left the eviction to Kubernetes are none of ours. A pod
whose policy says nothing any more is treated as Kubernetes would have treated it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, objects, taints
from vnode.api.objects import Object
from vnode.scheduling.placement.failover import Failover, Purge
from vnode.scheduling.placement.policy import Policy

AS_KUBERNETES: Final = Failover(purge=Purge.IMMEDIATE)
"""Its own default: 300 s."""


@dataclass(frozen=True, slots=True)
class DueEviction:
    """A pod of a lost cluster."""

    pod: Object
    policy: Policy | None
    failover: Failover
    at: float
    """When it is due, by the wall clock."""


def lost_since(node: Object) -> float | None:
    """Return since when the virtual node is not ready or out of reach; None if it is not."""
    found = []
    for taint in objects.spec(node).get("taints") or ():
        if taint.get("key") in keys.NODE_FAILURES and taint.get("effect") == taints.NO_EXECUTE:
            since = objects.parse_timestamp(str(taint.get("timeAdded") or ""))
            found += [since.timestamp()] if since else []

    return min(found, default=None)


def due(
    pods: Iterable[Object], policy_of: Callable[[Object], Policy | None], since: float
) -> list[DueEviction]:
    """Return the pods of a lost cluster that are to be replaced, in that order.

    Of those that are due at one moment, pods with a higher priority come first.
    """
    found = []
    for pod in pods:
        is_ours = keys.FAILOVER in objects.annotations(pod)
        if not is_ours or objects.is_terminating(pod) or objects.is_finished(pod):
            continue

        policy = policy_of(pod)
        failover = policy.failover if policy is not None else None
        failover = failover or AS_KUBERNETES
        if failover.purge is not Purge.NEVER:
            found.append(DueEviction(pod, policy, failover, since + failover.toleration))

    return sorted(found, key=_turn)


def _turn(eviction: DueEviction) -> tuple[float, int, str]:
    priority = int(objects.spec(eviction.pod).get("priority") or 0)
    return eviction.at, -priority, objects.key(eviction.pod)
