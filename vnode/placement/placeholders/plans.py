"""Compares the placeholders of workloads with their plans, and remembers what these do not want.

What is unwanted for a moment stays: pods that are being replaced are missing in the plan meanwhile,
and a placeholder that is gone is not made anew. No I/O.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.planning import placeholders, policy_node
from vnode.planning.policy import Policy
from vnode.planning.seats import Share
from vnode.planning.workload import Workload
from vnode.scheduling.cache import Cache

_REMOVAL_DELAY: Final = 60.0  # seconds for which a plan must not want a placeholder
_REPLAN_INTERVAL: Final = 60.0
"""Seconds until a workload is looked at again of which pods wait: these are planned for other
clusters from time to time, and no event tells of it."""
_AIMS_DELAY: Final = 5.0  # seconds until a workload is looked at again whose pods have no aims yet


@dataclass(frozen=True, slots=True)
class _PlaceholderClusters:
    """The clusters of a workload's policy."""

    shares: tuple[Share, ...]
    closed: frozenset[str]
    """Cordoned ones."""
    is_planned: bool
    """Whether it is known what they weigh."""


@dataclass(frozen=True, slots=True)
class PlaceholderVerdict:
    """Which pods are to have fewer placeholders, and when to look again, in seconds."""

    fewer: tuple[tuple[Object, tuple[str, ...]], ...] = ()
    """Pods, and the nodes where they keep theirs."""
    again: float | None = None


class PlaceholderPlans:
    """The plans of all workloads that have placeholders; `nodes` are the virtual ones."""

    def __init__(self, nodes: Informer, cache: Cache, clock: Clock) -> None:
        self._nodes = nodes
        self._cache = cache
        self._clock = clock
        # By workload: the placeholders (UID and node) that its plan does not want, since when.
        self._unwanted: dict[Hashable, dict[tuple[str, str], float]] = {}

    def forget(self, key: Hashable) -> None:
        """Forget a workload that has no placeholders, or whose policy wants none."""
        self._unwanted.pop(key, None)

    async def count(self, sample: Object, policy: Policy) -> None:
        """Have the workload of a pod counted, in slices, before it is compared."""
        await self._cache.workloads.count(sample, policy.group_by, self._clock)

    def compare(self, key: Hashable, sample: Object, policy: Policy) -> PlaceholderVerdict:
        """Compare the workload of a pod with its plan; `key` is its own."""
        workload = self._cache.workloads.of(sample, policy.group_by)
        if not workload.restored and any(workload.pending()):
            # A new leader does not know yet where they are to go.
            return PlaceholderVerdict(again=_AIMS_DELAY)

        clusters = self._clusters(policy, workload, objects.namespace(sample))
        wanted = placeholders.wanted(
            workload, clusters.shares, closed=clusters.closed, is_planned=clusters.is_planned
        )
        usable = {share.node for share in clusters.shares} - clusters.closed
        over, again = self._ripe(key, workload, wanted, usable)
        fewer = []
        for member in [workload.members[uid] for uid in wanted]:
            kept = [n for n in member.placeholders if n in usable and (member.uid, n) not in over]
            if len(kept) < len(member.placeholders):
                fewer.append((member.pod, tuple(kept)))

        if wanted and any(workload.pending()):
            again = min(again or _REPLAN_INTERVAL, _REPLAN_INTERVAL)

        return PlaceholderVerdict(tuple(fewer), again)

    def _ripe(
        self,
        key: Hashable,
        workload: Workload,
        wanted: Mapping[str, tuple[str, ...]],
        usable: set[str],
    ) -> tuple[set[tuple[str, str]], float | None]:
        """Return what has been unwanted for long enough, and when more will be."""
        now, before = self._clock.monotonic(), self._unwanted.pop(key, {})
        waits = {
            (uid, node): before.get((uid, node), now)
            for uid, nodes in wanted.items()
            for node in workload.members[uid].placeholders
            if node in usable and node not in nodes
        }
        if waits:
            self._unwanted[key] = waits

        over = {place for place, since in waits.items() if now - since >= _REMOVAL_DELAY - TICK}
        left = (since + _REMOVAL_DELAY - now for place, since in waits.items() if place not in over)
        return over, min(left, default=None)

    def _clusters(self, policy: Policy, workload: Workload, namespace: str) -> _PlaceholderClusters:
        """Return the clusters of a policy.

        Those that do not answer count: that they are full is as true as before.
        """
        there = list(self._nodes.store.values())
        closed = {objects.name(node) for node in there if objects.spec(node).get("unschedulable")}
        nodes = policy_node.covering(map(policy_node.planned_node, there), namespace)
        shares = policy.shares(nodes, workload.weights)
        return _PlaceholderClusters(
            shares, frozenset(closed), not policy.by_capacity or workload.weights is not None
        )
