"""Finds out how many more pods of a workload could start in each cluster, and since when. No I/O.

The scheduler's filters and what targets have free say it, where pods have left placeholders these.
What has turned out wrong counts as well: a cluster where pods waited although there seemed to be
room is not believed for a while.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.resources import Resources
from vnode.placement.moves import workload_state
from vnode.placement.moves.probed_openings import ProbedOpenings
from vnode.placement.moves.workload_moves import MovableWorkload, WorkloadMoves
from vnode.placement.moves.workload_state import PolicyClusters
from vnode.planning.move_policy import TRIED_AGAIN, Failback, FailbackMode, Openings
from vnode.planning.moving import MoveReason
from vnode.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class OtherMoves:
    """The moves of other workloads."""

    going: Mapping[str, int]
    """Cluster -> places that they take there, which its reports may not show yet."""
    targets: frozenset[str]
    """The clusters of all that are under way, or were a moment ago."""


@dataclass(frozen=True, slots=True)
class MoveContext:
    """A workload and its clusters at one moment."""

    view: MovableWorkload
    moves: WorkloadMoves
    snapshot: Snapshot
    clusters: PolicyClusters
    able: frozenset[str]
    """Those that could take its pods, given room; without those where moves were in vain."""
    free: frozenset[str]
    """Those that have room as well, by the filters."""
    fits: Mapping[str, int]
    """Cluster -> such pods for which it has room, by what it says is free."""
    requests: Resources
    others: OtherMoves
    now: float
    """Of the monotonic clock."""

    def better_than(self, node: str) -> frozenset[str]:
        """Return the clusters of higher tiers."""
        tiers = {share.node: share.tier for share in self.clusters.shares}
        return frozenset(n for n, tier in tiers.items() if tier > tiers.get(node, tier))


class RoomTracker:
    """Remembers since when there is room; `placeholders` is that of `Mover`."""

    def __init__(self, clock: Clock, placeholders: Openings | None) -> None:
        self._clock = clock
        self._probed = ProbedOpenings()
        self._placeholders = placeholders

    def forget(self, workload: str) -> None:
        """Forget a workload that has nothing to move any more."""
        self._probed.observe(workload, (), 0.0)

    def room(self, context: MoveContext, reason: MoveReason) -> tuple[dict[str, int], float | None]:
        """Return the room in each cluster, and after how long there may be more."""
        view, key = context.view, context.view.workload.key
        own = Counter[str]() if view.is_together else _own_places(context)
        wanted = context.requests, own + Counter(context.others.going)
        room = workload_state.room(view.workload, context.snapshot, context.free, *wanted)
        moving = context.moves.under_way.targets(context.now)
        self._probed.observe(key, room, context.now, moving)
        in_vain = self._in_vain(view, context.now)
        failback = view.policy.failback
        if reason is not MoveReason.FAILBACK:
            return {node: count for node, count in room.items() if node not in in_vain}, None

        asked: dict[str, int] = {}
        if failback.mode is FailbackMode.PLACEHOLDER and self._placeholders is not None:
            # Targets themselves say that there is room, whatever they have said of what is free.
            # Of a place that a pod is being given, or got a moment ago, theirs do not know yet:
            # they hold none, so that one place is enough for all of them to say so.
            answerable = workload_state.room(
                view.workload, context.snapshot, context.able, *wanted, least=1
            )
            taken, placeholders = context.others.targets | moving, view.workload.placeholders
            asked = {
                node: room.get(node, 0) if node in taken or self._is_doubtful(key, node) else count
                for node, count in answerable.items()
                if placeholders[node]
            }

        probed = {node: count for node, count in room.items() if node not in asked}
        found, wait = _stable(self._probed, key, failback, probed, context.now)
        if asked and self._placeholders is not None:
            stable, longer = _stable(
                self._placeholders, key, failback, asked, context.now, is_asked=True
            )
            found |= stable
            wait = min((each for each in (wait, longer) if each is not None), default=None)

        return found, wait

    def _is_doubtful(self, workload: str, node: str) -> bool:
        """Tell whether placeholders say so that were not tried since another one had no place."""
        at = self._placeholders.refuted(workload, node) if self._placeholders is not None else None
        return at is not None and self._clock.monotonic() - at < TRIED_AGAIN - TICK

    def _in_vain(self, view: MovableWorkload, now: float) -> set[str]:
        """Return the nodes where pods have waited in vain lately, though there seemed to be room.

        For failback the time begins anew at such a moment.
        """
        wall, found = self._clock.now().timestamp(), set()
        for node, moment in view.workload.saturated.items():
            age = wall - moment
            is_open = self._probed.begin_at(view.workload.key, node, now - age)
            if is_open and age < view.policy.overflow.after:
                found.add(node)

        return found


def _own_places(context: MoveContext) -> Counter[str]:
    """Return the places that pods of the workload are about to take, moved ones and others."""
    under_way = context.moves.under_way
    replacing = {move.replacement for move in under_way.moves}
    pending = context.view.workload.pending()
    new = Counter(m.aim for m in pending if m.aim and m.uid not in replacing)
    return under_way.taken(context.now) + new


def _stable(
    openings: Openings,
    workload: str,
    failback: Failback,
    room: dict[str, int],
    now: float,
    *,
    is_asked: bool = False,
) -> tuple[dict[str, int], float | None]:
    """Return the room that there has been for long enough, and how long to wait for more."""
    stable, waits = {}, []
    for node, count in room.items():
        since = openings.since(workload, node)
        if since is None:
            continue

        left = since + failback.stable_after(is_asked=is_asked) - now
        if left >= TICK:
            waits.append(left)
        else:
            stable[node] = count

    return stable, min(waits, default=None)
