"""What is known of one workload whose pods may have to be moved, from one look to the next.

One class changes it, so that moves, the pods that are directed to clusters for them, and what is
told to whoever asks agree. What clusters have at one moment is in a `PolicyClusters`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.owners import owner_key
from vnode.placement.moves.demands import WorkloadDemands
from vnode.placement.moves.probed_room import ProbedRoom
from vnode.placement.moves.under_way import Move, MovesNow, MovesUnderWay
from vnode.planning.move_reasons import SETTLED, MoveReason
from vnode.planning.move_state import Decision, Replica, replica_of
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode
from vnode.planning.unfinished_move import unfinished_move
from vnode.planning.workload import Workload
from vnode.planning.workload_key import PlannedWorkload
from vnode.telemetry import metrics


@dataclass(frozen=True, slots=True)
class ClosedCluster:
    """A cluster to which nothing is moved for a while, since a move to it was in vain."""

    until: datetime
    ends: float
    """The same moment of the monotonic clock."""


class SettledMoves(NamedTuple):
    """What has become of the moves of a workload since the last look."""

    resumed: bool
    """One is gone on with that another leader has begun."""
    arrived: bool
    """All pods of a workload that was moved as one are there."""
    wait: float | None
    """Seconds after which to look again if no pod changes; None if never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadNow:
    """A workload at the moment when its clusters are looked at for one reason."""

    moves: MovesNow
    replicas: tuple[Replica, ...]
    """Its pods but for those that were evicted."""
    unreplaced: int
    """Pods that are awaited, which their owner makes once others are gone."""
    limit: int
    """So many of its pods are moved at once."""


class WorkloadMoves:
    """The moves of one workload, and what is known and asked for about it.

    Moments are of the monotonic clock, and `wall` is the same moment as `now`.
    """

    def __init__(self, key: PlannedWorkload, policy: Policy, workload: Workload) -> None:
        self.key = key
        self.policy = policy
        self.workload = workload
        """The scheduler's own counts."""
        self.sample: Object = {}
        """One of its pods, as informers keep it; empty if none lives."""
        self.clusters: frozenset[str] = frozenset()
        """Those that it may go to, as far as they are known."""
        self.settling = SETTLED
        """Seconds after which a change of its clusters is looked at."""
        self.under_way = MovesUnderWay()
        self.probed = ProbedRoom()
        self.demands = WorkloadDemands()
        self.closed: dict[str, ClosedCluster] = {}
        """By node: those to which moves were in vain lately, as it was told."""
        self._template: Object | None = None
        self._together_for: MoveReason | None = None  # why it is being moved as one, if it is
        self._refused = ""  # why the last eviction was refused
        self._stuck = ""  # why pods stay that are to be moved, as it was told last
        self._owner: Object = {}  # the controller of its newest pod; empty before the first look

    def due(self, nodes: Collection[PlannedNode]) -> Iterator[MoveReason]:
        """Yield why there may be pods to move, the first reason first.

        Whoever asks for moves is told where there are none. Changes of clusters are awaited
        together for as long as the last reason does that was yielded.
        """
        for reason in self._reasons():
            if self._may_move(reason, nodes):
                self.settling = reason.settling(self.policy)
                yield reason
            else:
                self.report(reason, Decision())

    def is_idle(self, nodes: Collection[PlannedNode], now: float) -> bool:
        """Tell whether nothing is left to do or to remember."""
        if self.under_way or self.under_way.in_backoff(now):
            return False

        return not any(self._may_move(reason, nodes) for reason in self._reasons())

    def _reasons(self) -> list[MoveReason]:
        """Return why pods may be moved; a workload that is moved as one is not left in between."""
        found = self.demands.reasons(self.policy)
        begun = self._together_for
        return found if begun is None or begun in found else [*found, begun]

    def _may_move(self, reason: MoveReason, nodes: Collection[PlannedNode]) -> bool:
        """Tell whether there may be pods to move, before it is looked at closely."""
        return bool(self.workload.destination) or reason.may_move(self.workload, self.policy, nodes)

    def newest(self) -> Object | None:
        """Return the pod that was made last."""
        pods = (member.pod for member in self.workload.members.values())
        return max(pods, key=_created, default=None)

    @property
    def template(self) -> Object | None:
        """A pod as its present owner makes the next one; None if none was kept."""
        newest, kept = self.newest(), self._template
        if kept is None or newest is None:
            return None

        return kept if owner_key(kept) == owner_key(newest) else None

    def keep_template(self, pod: Object) -> None:
        """Keep one of its pods, as it is stored, as one that is not known yet.

        Filters take what a known pod has already, such as its part of a quota, for room for it.
        """
        self._template = {**pod, "metadata": {**objects.metadata(pod), "uid": ""}}

    def meet(self, pod: Object) -> None:
        """Keep the newest version of one of its pods as a sample, while it lives."""
        if not objects.is_terminating(pod):
            self.sample = pod

    def look(
        self,
        reason: MoveReason,
        clusters: frozenset[str],
        free: Mapping[str, int],
        now: float,
        wall: datetime,
    ) -> WorkloadNow:
        """Look for a reason at those clusters to which it may go; `free` has room, for so many.

        Where there is more of it than when moves were in vain there, these do not count any more.
        """
        self.clusters = clusters
        for node, fits in free.items():
            self.under_way.reopen(node, fits, now)

        moves = self.under_way.at(now)
        replicas = self._replicas(moves.evicted, wall, moves_jobs=reason.moves_jobs)
        total = len(replicas) + moves.missing.total()
        deleted = self.workload.deleted.values()
        return WorkloadNow(
            moves=moves,
            replicas=replicas,
            unreplaced=sum(each.is_awaited(wall.timestamp()) for each in deleted),
            limit=self.demands.limit(reason, self.policy).of(total),
        )

    def _replicas(
        self, evicted: frozenset[str], wall: datetime, *, moves_jobs: bool = False
    ) -> tuple[Replica, ...]:
        patience = self.policy.overflow.after
        return tuple(
            replica_of(member, wall, patience, moves_jobs=moves_jobs)
            for uid, member in self.workload.members.items()
            if uid not in evicted
        )

    def settle(
        self,
        policy: Policy,
        workload: Workload,
        is_there: Callable[[Move], bool],
        now: float,
        wall: datetime,
    ) -> SettledMoves:
        """Look at the pods as they are now, and end the moves and demands that are over."""
        self.demands.tidy(policy)
        self._end_moves(policy, workload, is_there, now, wall)
        wait = self.under_way.wait(now)
        return SettledMoves(self._resume(), self._arrive(), wait)

    def _end_moves(
        self,
        policy: Policy,
        workload: Workload,
        is_there: Callable[[Move], bool],
        now: float,
        wall: datetime,
    ) -> None:
        """End the moves that are over, and with them what they had directed to their clusters."""
        if self.policy is not policy and self.policy != policy:
            self.under_way.outdate()

        self.policy, self.workload = policy, workload
        if self._is_another():
            for move in list(self.under_way.moves):
                self.withdraw(move)

            self.under_way = MovesUnderWay()

        if not self.under_way:
            return

        before = self.under_way.missing()
        replicas = self._replicas(self.under_way.evicted(), wall)
        for move, outcome in self.under_way.settle(replicas, is_there, now):
            metrics.MOVES.labels(move.reason.value, outcome.value).inc()

        if not self.under_way:
            workload.end_directions(before)

    def _resume(self) -> bool:
        """Go on with a move that another leader has begun; tell whether there was one."""
        if not self.policy.is_together or self.workload.destination:
            return False

        found = unfinished_move(self.workload)
        return found is not None and self.head_for(*found)

    def _arrive(self) -> bool:
        """End the move of a workload that was moved as one, if its pods are all there.

        One that is no longer kept together goes nowhere.
        """
        goal, bound = self.workload.destination, self.workload.bound
        is_there = not self.under_way and bound.keys() <= {goal}
        has_arrived = bool(goal) and (is_there or not self.policy.is_together)
        self._together_for = None if has_arrived else self._together_for
        return has_arrived

    def head_for(self, node: str, reason: MoveReason) -> bool:
        """Have all pods of a workload that is moved as one go there; tell whether that is news."""
        is_news = self.workload.head_for(node, reason.value)
        self._together_for = reason if is_news else self._together_for
        return is_news

    def begin(self, move: Move) -> None:
        """Add a move, and have the pod that replaces the evicted one go to its cluster."""
        self.under_way.begin(move)
        if not self.policy.is_together:
            self.workload.direct(move.target)

    def withdraw(self, move: Move) -> None:
        """Take a move back: its pod was not evicted, and no pod goes to its cluster for it."""
        self.under_way.withdraw(move)
        workload, node = self.workload, move.target
        is_pending = any(workload.pending())
        if self.policy.is_together and not (self.under_way or workload.bound[node] or is_pending):
            self._together_for = None
            workload.end_move()

        workload.take_back(node)

    def confirm(self, reason: MoveReason) -> None:
        """Take note that the pod of the last move was evicted."""
        self._refused = self._stuck = ""
        if (demand := self.demands.first(reason)) is not None:
            demand.count_eviction(len(self.under_way))

    def refuse(self, reason: MoveReason, why: str) -> None:
        """Take note that an eviction was refused."""
        self._refused = why
        self.report(reason, Decision(left=1))

    def report(self, reason: MoveReason, decision: Decision) -> bool:
        """Tell whoever asks for moves of that reason what was decided.

        Return whether it is news for the policy why pods stay that are to be moved.
        """
        if (demand := self.demands.first(reason)) is not None:
            demand.report(decision, len(self.under_way), self._refused)

        if not (decision.is_stuck and reason.is_told):
            return False

        is_news, self._stuck = self._stuck != decision.why, decision.why
        return is_news

    def close(self, now: float, wall: datetime) -> tuple[str, ...] | None:
        """Take note of where moves were in vain; return which are news, None if nothing changed."""
        ends, before = self.under_way.backoffs(now), self.closed
        self.closed = {
            node: before[node]
            if node in before and before[node].ends == end
            else ClosedCluster(wall + timedelta(seconds=round(end - now)), end)
            for node, end in ends.items()
        }
        if self.closed == before:
            return None

        return tuple(n for n, each in self.closed.items() if each != before.get(n))

    def _is_another(self) -> bool:
        """Tell whether the owner was deleted and made anew since the last look.

        Its pods replace none of the former's: they would seem to have arrived elsewhere.
        """
        newest = self.newest()
        owner = newest and objects.controller_reference(newest)
        if not owner:
            return False

        before, self._owner = self._owner, owner
        of_one_name = all(before.get(field) == owner.get(field) for field in ("kind", "name"))
        return of_one_name and before.get("uid") != owner.get("uid")


def _created(pod: Object) -> tuple[str, str]:
    return objects.created(pod), objects.uid(pod)
