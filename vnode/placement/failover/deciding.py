"""Decides which pods of a lost cluster are to be replaced, and after how long. Pure.

Pods that the webhook has marked are replaced as their placement policy says, or as Kubernetes would
where that says nothing any more. All others are replaced as their own tolerations say, as if
Kubernetes had set the taint of a node that is not ready at the moment when the cluster was lost: it
may set that late, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, objects, tolerance
from vnode.api.objects import Object
from vnode.planning.failover import Failover, Purge
from vnode.planning.policy import Policy

AS_KUBERNETES: Final = Failover(purge=Purge.IMMEDIATE)
"""Its own default: 300 s."""

ALLOWANCE: Final = 10
"""Evictions of a namespace for which priorities count before others have a turn."""


@dataclass(frozen=True, slots=True)
class DueEviction:
    """A pod of a lost cluster."""

    pod: Object
    after: float
    """Seconds for which its cluster must have been lost."""
    policy: Policy | None = None
    is_ours: bool = True
    """Whether Kubernetes leaves the pod to us; else its own tolerations say when."""

    @property
    def per_minute(self) -> int | None:
        """How many pods of its policy are evicted in a minute; None: as many as are due."""
        failover = self.policy.failover if self.policy is not None else None
        return failover.per_minute if failover is not None else None

    @property
    def shared_limit(self) -> str:
        """The policy whose limit the pod shares with those of other namespaces; "" if none."""
        policy = self.policy
        if policy is None or policy.namespace or self.per_minute is None:
            return ""

        return policy.key


def eviction(pod: Object, policy_of: Callable[[Object], Policy | None]) -> DueEviction | None:
    """Return when a pod of a lost cluster is to be replaced; None if it is not."""
    if objects.is_terminating(pod) or objects.is_finished(pod):
        return None

    if keys.FAILOVER not in objects.annotations(pod):
        seconds = tolerance.of_lost_node(pod)
        return None if seconds is None else DueEviction(pod, seconds, is_ours=False)

    policy = policy_of(pod)
    failover = policy.failover if policy is not None else None
    failover = failover or AS_KUBERNETES
    if failover.purge is Purge.NEVER:
        return None

    return DueEviction(pod, failover.toleration, policy)


def order(due: DueEviction) -> tuple[float, int, str]:
    """Return what orders the pods of a lost cluster: of those that are due at one moment, pods with
    a higher priority come first."""
    return due.after, -objects.priority(due.pod), objects.key(due.pod)


def namespace_of(eviction: DueEviction) -> str:
    """Return the namespace of a pod: those of lost clusters take turns."""
    return objects.namespace(eviction.pod)


def rank_of(eviction: DueEviction) -> int:
    """Return by what a pod goes before those of other namespaces: the highest priority first."""
    return -objects.priority(eviction.pod)
