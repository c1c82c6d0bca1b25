"""Decides which pods of a planned workload are moved next, and to where. Pure.

To move a pod is to evict it: its owner makes another one, which goes where the plan has a gap. So a
pod is moved only out of a cluster that has more than its plan, and only while another one has less
and has room at that moment: else the new pod would wait, or come back. Each step brings what runs
closer to the plan, so a workload that is at its plan, or cannot get closer, is left alone.

A plan is blind to capacity. Pods that overflowed past a better cluster for lack of room go up to it
when it has some, though the plan may have no gap there, nor a place for them anywhere else. Such a
step leaves the pods that are out of place as many as they were, and each closer to its place: so
these steps end, too, and no other undoes one.

The plan is the scheduler's own, as it will be once the new pod is there: pods on clusters that take
none now keep their places and are not planned. While a Deployment is rolled out, each of its
revisions is planned by itself (`revisions`), and moved within it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from vnode.planning import revisions
from vnode.planning.move_policy import STARTING
from vnode.planning.move_reasons import MoveReason
from vnode.planning.move_state import Decision, PlannedEviction, Replica, WorkloadState
from vnode.planning.plan import WorkloadPlan
from vnode.planning.revisions import Revision
from vnode.planning.seats import Share

_OLDER: Final = 100  # revisions that are planned apart
_LOOKED_AT: Final = 10_000
"""Pods that are looked at for older revisions: each is planned with those of other makers."""


def decide(now: WorkloadState, reason: MoveReason, most: int | None = None) -> Decision:
    """Return the next steps, `most` of them if that is given; what is left is without these.

    There are none for a workload that is at its plan, or that cannot get closer.
    """
    room = dict(now.room)
    finders = [_StepFinder(part, reason, room) for part in _by_revision(now)]
    busy = now.unreplaced + sum(1 for r in now.replicas if not r.ready and r.age < STARTING)
    budget = now.limit - max(now.under_way, busy)
    if len(finders) > 1 and now.missing:
        budget = 0  # of which revision the next pod is, is not known yet

    budget = budget if most is None else min(budget, most)
    evictions: list[PlannedEviction] = []
    for finder in finders:
        while len(evictions) < budget and (eviction := finder.next()) is not None:
            evictions.append(eviction)

    counts, open_gaps, gaps = zip(*(finder.left() for finder in finders), strict=True)
    left, open_gap, gap = sum(counts), any(open_gaps), sorted({node for g in gaps for node in g})
    if not left:
        return Decision(tuple(evictions))

    if not gap:
        why = "the plan has no place for them in other clusters"
        return Decision(tuple(evictions), left, why, is_stuck=True)

    if not open_gap:
        return Decision(tuple(evictions), left, "no room", tuple(gap), is_stuck=True)

    count = max(now.under_way, busy) + len(evictions)
    return Decision(tuple(evictions), left, f"{count} of its pods are being moved or not ready")


def _by_revision(now: WorkloadState) -> list[WorkloadState]:
    """Return the parts that are planned apart: one, unless the workload is being rolled out.

    Of the pods that are planned with those of an older revision, only these are moved. None goes up
    to where its plan has no gap, as maximums are about all revisions together. Where there are very
    many older ones, those that have made a pod last come first, and of some no pod is moved.
    """
    latest: dict[Revision, float] = {}
    for replica in now.replicas:
        latest[replica.revision] = min(replica.age, latest.get(replica.revision, math.inf))

    if not revisions.have_superseded(latest):
        return [now]

    newest = frozenset(revisions.current({key: -age for key, age in latest.items()}).values())
    own: dict[Revision, list[Replica]] = {}
    for replica in now.replicas:
        own.setdefault(replica.revision, []).append(replica)

    parts = [tuple(replica for revision in newest for replica in own[revision])]
    counted = {each.maker: [r._replace(movable=False) for r in own[each]] for each in newest}
    looked_at = 0
    older = sorted(latest.keys() - newest, key=lambda r: (latest[r], r.maker, r.owner or ""))
    for revision in older[:_OLDER]:
        peers = (each for maker, each in counted.items() if maker != revision.maker)
        parts.append((*own[revision], *itertools.chain.from_iterable(peers)))
        looked_at += len(parts[-1])
        if looked_at > _LOOKED_AT:
            break

    return [replace(now, replicas=replicas, overflows=False) for replicas in parts]


class _StepFinder:
    """Finds one step after the other, as if the earlier ones had been taken.

    `room` is what is left of it, for all that find steps at once.
    """

    def __init__(self, now: WorkloadState, reason: MoveReason, room: dict[str, int]) -> None:
        self._seats = now.seats
        self._reason = reason
        self._climbs = reason.climbs and now.overflows
        self._caps = now.caps
        self._able = {share.node: rank for rank, share in enumerate(now.seats.ranked)}
        self._there = Counter(r.node for r in now.replicas if r.bound)
        self._counted = Counter(r.node for r in now.replicas if r.node) + Counter(now.missing)
        self._room = room
        self._placeholders = Counter(node for r in now.replicas for node in r.placeholders)
        self._replicas = now.total
        self._elsewhere = sum(n for node, n in self._there.items() if node not in self._able)
        self._candidates: dict[str, list[Replica]] = {}
        # Source -> where its candidates wait, too.
        self._waiting: defaultdict[str, Counter[str]] = defaultdict(Counter)
        concerned = (
            replica
            for replica in now.replicas
            if replica.bound and replica.movable and reason.concerns(replica, now, self._able)
        )
        for replica in sorted(concerned, key=lambda r: (not r.ready, -r.age, r.uid)):
            self._candidates.setdefault(replica.node, []).append(replica)
            if replica.placeholders:
                self._waiting[replica.node].update(replica.placeholders)

    def next(self) -> PlannedEviction | None:
        """Return the next step, and take it; None if there is none."""
        for source in self._sources():
            if (target := self._target(source)) is not None:
                replica = self._pick(source, target.node)
                self._placeholders.subtract(replica.placeholders)
                eviction = PlannedEviction(
                    replica.uid,
                    source,
                    target.node,
                    self._there[source],
                    self._stays(source),
                    self._replicas,
                )
                self._take(eviction)
                return eviction

        return None

    def _pick(self, source: str, target: str) -> Replica:
        """Take a pod of a cluster, best one that waits for that target.

        Else one that waits for no other: its placeholders would end with it.
        """
        here = self._candidates[source]
        ranks = range(len(here))
        best = max(
            ranks, key=lambda n: (target in here[n].placeholders, -len(here[n].placeholders), n)
        )
        self._waiting[source].subtract(here[best].placeholders)
        return here.pop(best)

    def left(self) -> tuple[int, list[str], list[str]]:
        """Return how many are still too many, and which clusters they could go to: now, ever."""
        sources = list(self._sources())
        count = sum(min(self._surplus(s), len(self._candidates[s])) for s in sources)
        places = (
            share for s in sources for share in (*(g for g, _ in self._gaps(s)), *self._better(s))
        )
        gaps = sorted({share.node for share in places})
        return count, [node for node in gaps if self._room.get(node, 0) > 0], gaps

    def _sources(self) -> Iterator[str]:
        """Yield the clusters that have too many, the worst first."""

        def order(node: str) -> tuple[bool, int, int, int]:
            rank = self._able.get(node, 0)
            tier = self._seats.ranked[rank].tier if node in self._able else 0
            return node in self._able, tier, -self._surplus(node), -rank

        too_many = [node for node in self._candidates if self._surplus(node) > 0]
        yield from sorted((node for node in too_many if self._candidates[node]), key=order)

    def _surplus(self, node: str) -> int:
        return self._there[node] - self._stays(node)

    def _stays(self, node: str) -> int:
        """Return how many pods a cluster keeps."""
        return self._reason.keeps(node, self._plan(node).planned, self._caps)

    def _plan(self, source: str) -> WorkloadPlan:
        """Return the scheduler's plan once a pod of the source has been replaced."""
        replicas = self._replicas - self._elsewhere + (source not in self._able)
        made = self._seats.plan(replicas)
        return WorkloadPlan(made.planned, made.unplaced, replicas, self._counted)

    def _gaps(self, source: str) -> Iterator[tuple[Share, int]]:
        plan = self._plan(source)
        for share in self._seats.ranked:
            gap = plan.gap(share.node)
            if gap > 0 and share.node != source:
                yield share, gap

    def _better(self, source: str) -> Iterator[Share]:
        """Yield the clusters of higher tiers that may have more of the workload, gap or not."""
        tier = self._seats.ranked[self._able[source]].tier if self._climbs else 0
        for share in self._seats.ranked if self._climbs else ():
            counted = self._counted[share.node] + self._placeholders[share.node]
            counted -= self._waiting[source][share.node] > 0
            may_have = share.maximum is None or counted < share.maximum
            if share.tier > tier and share.weight > 0 and may_have:
                yield share

    def _target(self, source: str) -> Share | None:
        """Return where a pod of a cluster goes: to a gap of the plan, or up; None if nowhere."""
        return self._gap(source) or self._step_up(source)

    def _step_up(self, source: str) -> Share | None:
        """Return the cluster whose share is furthest behind, of those with room in the best tier.

        That is where a pod would go that finds all clusters full that the plan has a gap in.
        """
        better = [share for share in self._better(source) if self._room.get(share.node, 0) > 0]
        best = [share for share in better if share.tier == better[0].tier]
        return max(best, key=lambda s: s.weight / (2 * self._counted[s.node] + 1), default=None)

    def _gap(self, source: str) -> Share | None:
        """Return the cluster with the largest gap, of those with room in the best tier."""
        found, widest = None, 0
        for share, gap in self._gaps(source):
            if found is not None and share.tier != found.tier:
                break

            if gap > widest and self._room.get(share.node, 0) > 0:
                found, widest = share, gap

        return found

    def _take(self, eviction: PlannedEviction) -> None:
        self._there[eviction.source] -= 1
        self._counted[eviction.source] -= 1
        self._counted[eviction.target] += 1
        self._room[eviction.target] -= 1
        self._elsewhere -= eviction.source not in self._able
