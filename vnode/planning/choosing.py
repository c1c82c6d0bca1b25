"""Chooses the clusters of one pod of a planned workload: the planned one, and overflow. Pure.

A pod goes where the gap between planned and counted pods is largest. That is its aim until it is
bound, as long as the plan has room for it there: so pods that wait for full clusters are divided by
the plan, too, and none moves while nothing changes.

A pod that has been unschedulable for the policy's threshold gets one more cluster, another after
the next threshold, and so on; its candidates in the former stay. Which one, a second plan says, in
which clusters that are full for the workload have no more than what runs there: what they cannot
take is divided by the weights of the others.

While a Deployment is rolled out its new pods are planned without the old ones
(`vnode.planning.revisions`), so that more pods than a maximum may be planned for a
cluster until these are gone. Where there is no room for that, the new ones overflow at once.

A pod that replaces one that was moved to a better cluster, though not to where the plan has a gap,
has that cluster opened as soon as its planned one has rejected it: it leaves a placeholder there.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import Final

from vnode.api.durations import TICK
from vnode.planning import plan
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.policy import Overflow
from vnode.planning.revisions import RevisionCounts, revision_of
from vnode.planning.seats import Share, plan_once
from vnode.planning.unfinished_move import unfinished_move
from vnode.planning.workload import Workload
from vnode.planning.workload_pod import WorkloadPod

_SETTLED: Final = 5.0
"""Seconds after which a pod that still waits in a cluster shows others that it is full.

The pods of a burst reach their threshold together: none may then take for free a cluster where
another is about to."""


def choose(
    workload: Workload,
    member: WorkloadPod,
    shares: tuple[Share, ...],
    overflow: Overflow,
    now: float,
) -> ClusterChoice:
    """Choose for a pending pod, which need not be counted yet.

    `shares` are those of the clusters that can take it now. Pods elsewhere keep their places and
    are not planned.
    """
    search = _Search(workload, member, shares)
    aim = search.aim()
    opened = [entry for entry in member.opened if entry[0] != aim and search.takes(entry[0])]
    since = math.floor(now) if member.since is None else min(member.since, now)
    limit = min(overflow.max_candidates, len(shares)) - 1 if aim else 0
    opened = opened[:limit]
    is_surge = search.is_surge(aim)
    directed = search.directed(aim) if limit else ""
    if directed and member.since is not None and directed not in dict(opened):
        opened.append((directed, now))

    due = _passed(now - since, overflow.after) if member.since is not None else 0
    due = min(limit, max(due, is_surge))
    while (count := sum(node != directed for node, _ in opened)) < due:
        own = {aim, *(node for node, _ in opened)}
        if member.since is not None:
            search.full |= own

        node = search.overflow(own, overflow.after, now)
        if not node:
            break

        if len(opened) >= limit:  # it has waited where it was moved to for as long as elsewhere
            opened = [entry for entry in opened if entry[0] != directed]
            directed = ""

        opened.append((node, now))

    waits = due <= count < limit
    until = since + (count + 1) * overflow.after if waits else None
    if directed and member.since is None:
        until = since

    return ClusterChoice(
        aim,
        tuple(opened),
        search.planned,
        search.replicas,
        member.since,
        until,
        is_surge,
        directed,
        frozenset(search.full),
    )


def home(
    workload: Workload,
    member: WorkloadPod,
    nodes: Mapping[str, Share],
    gang: Collection[str] = (),
    tried: str = "",
) -> str | None:
    """Return which of the nodes all pods of a workload go to, by where most are bound.

    While it is being moved, that is its destination, also if another leader has begun that. "" if
    any will do: this pod may find the first place. None while another one is looking for it; then
    this one has to wait. Should several look at once, as after a change of the policy, one of them
    goes on: all would wait for ever where there is no room, however much there is elsewhere.

    Pods that start together look together: `gang` has their UIDs, this one's too, and `tried` is
    the node that one of them has found, or may find, for all.
    """
    if workload.destination in nodes:
        return workload.destination

    unfinished = unfinished_move(workload)
    if unfinished is not None and unfinished[0] in nodes:
        return unfinished[0]

    bound = {node: count for node, count in workload.bound.items() if node in nodes}
    if bound:
        return most(bound)

    if gang and tried in nodes:
        return tried

    # A policy that has changed may want none of them where pods still have candidates.
    fitting = {node for node, share in nodes.items() if _takes_all(share, workload)}
    if not any(workload.others(member, node) for node in fitting):
        return ""

    if gang and all(
        each.uid in gang or each.holds().isdisjoint(fitting) for each in workload.pending()
    ):
        return ""

    if member.uid not in workload.members or member.holds().isdisjoint(fitting):
        return None

    looking = (m.uid for m in workload.pending() if not m.holds().isdisjoint(fitting))
    return "" if member.uid == min(looking) else None


def _takes_all(share: Share, workload: Workload) -> bool:
    return share.maximum is None or len(workload.members) <= share.maximum


class _Search:
    """Finds the best of the clusters for one pod, which itself counts nowhere."""

    def __init__(self, workload: Workload, member: WorkloadPod, shares: tuple[Share, ...]) -> None:
        self._workload = workload
        self._member = member
        self._shares = shares
        self.open = {share.node: share for share in shares}
        self.full: set[str] = set()
        is_counted = member.uid in workload.members
        self._own = member if is_counted else WorkloadPod({}, "")
        self._maximums = {share.node: share.maximum for share in shares}
        self._peers = peers = workload.peers(revision_of(member.pod))
        if peers.placeholders:
            self._shares = shares = tuple(_without(s, peers.placeholders) for s in shares)

        self._seats = workload.seats(shares)
        made = plan.of_peers(self._seats, peers, more=not is_counted)
        self.replicas, self.planned, self._there = made.replicas, made.planned, made.counted

    def aim(self) -> str:
        """Return the node that the pod keeps, or else the one with the largest gap.

        Where pods were moved to, that gap is filled first: there is room for them.
        """
        counted = {s.node: self._counted(s.node) for s in self._shares}
        kept = self._member.aim
        if kept in self.open and counted[kept] < self.planned.get(kept, 0):
            return kept

        for share in self._seats.ranked if self._workload.directed else ():
            node = share.node
            gap = self.planned.get(node, 0) - counted[node]
            if self._workload.directed[node] and gap > 0 and self._has_place(node):
                return node

        # Gaps for which placeholders wait are for their pods to return to; others come first.
        ranked, has_place = self._seats.ranked, self._has_place
        placeholders = self._peers.placeholders
        if placeholders:
            taken = {node: count + placeholders[node] for node, count in counted.items()}
            if node := _widest(ranked, self.planned, taken, has_place):
                return node

        return _widest(ranked, self.planned, counted, has_place)

    def directed(self, aim: str) -> str:
        """Return the node beside its aim that the pod replaces a moved one on; "" if none.

        The first pods to come do so, as it is with gaps that pods were moved to.
        """
        node, wanted = self._own.directed, self._workload.directed
        if node:
            return node if node != aim and self.takes(node) else ""

        if not wanted or wanted[aim] or self._own.aim or self._own.opened:
            return ""

        others = (share for share in self._seats.ranked if share.node != aim)
        return next((s.node for s in others if wanted[s.node] and self.takes(s.node)), "")

    def overflow(self, own: Collection[str], after: float, now: float) -> str:
        """Return the next cluster for a pod that waits in its `own` ones; "" if there is none.

        At best no pod of the workload waits there; at least none for as long as this one has. Pods
        that are larger do not count.
        """
        saturated = {node for node, at in self._saturated.items() if now - at < after}
        saturated |= self.full if after > 0 else set()
        for patience in (min(after / 2, _SETTLED), after):
            least = patience - TICK
            full = {node for node, since in self._waiting.items() if now - since >= least}
            if node := self._instead_of(full.union(saturated, own)):
                return node

        return ""

    @cached_property
    def _saturated(self) -> Mapping[str, float]:
        return self._workload.waited.saturated(self._member.size)

    @cached_property
    def _waiting(self) -> Mapping[str, float]:
        """Node -> since when a pod that is not larger waits for it."""
        size, waited = self._member.size, self._workload.waited
        return {node: waited.since(node, size) for node in self.open}

    @cached_property
    def _closed(self) -> Mapping[str, Share]:
        """The shares as they are where a cluster is full: as many pods as run there."""
        bound = self._peers.bound
        return {share.node: _capped(share, bound[share.node]) for share in self._seats.ranked}

    def takes(self, node: str) -> bool:
        """Tell whether the pod may go to a node without breaking the maximum.

        It may have a candidate there that was made before the policy, or before the policy drained
        the cluster.
        """
        return self._has_place(node, self._workload.counts)

    def is_surge(self, aim: str) -> bool:
        """Tell whether it is for older revisions that the maximum has no place for the pod."""
        is_whole = self._peers is self._workload.counts
        return not is_whole and self._has_place(aim) and not self.takes(aim)

    def _instead_of(self, full: Collection[str]) -> str:
        """Return the cluster for the pod if those are full.

        Of a hundred clusters, one more is full each time, so that no order of seats is kept.
        """
        opened, own = self._peers.opened, {node for node, _ in self._own.opened}
        ranked = [self._closed[s.node] if s.node in full else s for s in self._seats.ranked]
        others = [share for share in ranked if share.node not in full]
        counted = {s.node: self._counted(s.node) + opened[s.node] - (s.node in own) for s in others}
        planned = plan_once(self.replicas, ranked).planned
        return _widest(others, planned, counted, self.takes)

    def _counted(self, node: str) -> int:
        return self._there.get(node, 0) - (self._own.aim == node)

    def _has_place(self, node: str, counts: RevisionCounts | None = None) -> bool:
        """Tell whether the maximum has a place for the pod, beside its peers or those counted."""
        if node not in self.open:
            return False

        maximum = self._maximums[node]
        counts = self._peers if counts is None else counts
        return maximum is None or self._workload.others(self._member, node, counts) < maximum


def _widest(
    ranked: Iterable[Share],
    planned: Mapping[str, int],
    counted: Mapping[str, int],
    takes: Callable[[str], bool],
) -> str:
    """Return the node with the largest gap in the best tier that has one; "" if none has."""
    best, tier, widest = "", 0, 0
    for share in ranked:
        if best and share.tier != tier:
            break

        gap = planned.get(share.node, 0) - counted[share.node]
        if gap > widest and takes(share.node):
            best, tier, widest = share.node, share.tier, gap

    return best


def _without(share: Share, placeholders: Mapping[str, int]) -> Share:
    """Return what is left of a share beside the placeholders, which count towards its maximum."""
    if share.maximum is None:
        return share

    return share.capped(max(0, share.maximum - placeholders.get(share.node, 0)))


def _capped(share: Share, count: int) -> Share:
    maximum = count if share.maximum is None else min(count, share.maximum)
    return dataclasses.replace(share, maximum=maximum)


def _passed(age: float, after: float) -> int:
    """Return how many thresholds have passed."""
    return int((age + TICK) / max(after, TICK))


def most(counts: Mapping[str, int]) -> str:
    """Return the node with the most pods, the first by name of several; "" if there is none."""
    return min(counts, key=lambda node: (-counts[node], node), default="")
