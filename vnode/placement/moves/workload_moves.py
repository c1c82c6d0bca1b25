"""What is known of one workload whose pods may have to be moved, from one look to the next.

One class changes it, so that moves, the pods that are directed to clusters for them, and what is
told to whoever asks agree. What clusters have at one moment is in a `PolicyClusters`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.owners import owner_key
from vnode.placement.moves.demands import WantedMoves, WorkloadDemands
from vnode.placement.moves.move import Move
from vnode.placement.moves.moves_in_vain import MovesInVain
from vnode.placement.moves.probed_room import ProbedRoom
from vnode.placement.moves.taken_places import TakenPlaces
from vnode.placement.moves.under_way import MovesUnderWay
from vnode.placement.moves.workload_now import SettledMoves, WorkloadNow
from vnode.planning import weighing
from vnode.planning.move_reasons import SETTLED, MoveReason
from vnode.planning.move_state import Decision, replicas_of
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode
from vnode.planning.unfinished_move import unfinished_move
from vnode.planning.workload import Workload
from vnode.planning.workload_key import PlannedWorkload
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.telemetry import metrics

UNBOUNDED: Final = 1000
"""Pods that a cluster has room for if it does not say what it has."""


class WorkloadMoves:
    """The moves of one workload, and what is known and asked for about it.

    Moments are of the monotonic clock, and `wall` is the same moment as `now`. `taken` are the
    places that moves of all workloads take.
    """

    def __init__(
        self,
        key: PlannedWorkload,
        policy: Policy,
        workload: Workload,
        taken: TakenPlaces | None = None,
    ) -> None:
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
        self.taken = TakenPlaces() if taken is None else taken
        self.under_way = MovesUnderWay(self.taken)
        self.probed = ProbedRoom()
        self.demands = WorkloadDemands()
        self.closed = MovesInVain()
        self._template: Object | None = None
        self._together_for: MoveReason | None = None  # why it is being moved as one, if it is
        self._refused = ""  # why the last eviction was refused
        self._stuck = ""  # why pods stay that are to be moved, as it was told last
        self._owner: Object = {}  # the controller of its newest pod; empty before the first look

    def due(self, nodes: Collection[PlannedNode]) -> Iterator[WantedMoves]:
        """Yield what is wanted for which there may be pods to move, what comes first first.

        What is over is not wanted any more. Whoever asks for moves is told where there are none.
        Changes of clusters are awaited together for as long as the last reason does that was
        yielded.
        """
        self.demands.tidy(self.policy)
        for wanted in self.demands.wanted(self.policy, self._together_for):
            if wanted.reason.may_move(self.workload, self.policy, nodes):
                self.settling = wanted.reason.settling(self.policy)
                yield wanted
            else:
                self.report(wanted, Decision())

    def is_idle(self, nodes: Collection[PlannedNode], now: float) -> bool:
        """Tell whether nothing is left to do or to remember."""
        if self.under_way or self.under_way.in_backoff(now):
            return False

        all_wanted = self.demands.wanted(self.policy, self._together_for)
        return not any(w.reason.may_move(self.workload, self.policy, nodes) for w in all_wanted)

    @property
    def template(self) -> Object | None:
        """A pod as its present owner makes the next one; None if none was kept."""
        newest, kept = self.workload.newest, self._template
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
        wanted: WantedMoves,
        nodes: Sequence[VirtualNodeInfo],
        takers: tuple[frozenset[str], frozenset[str]],
        rooms: Mapping[str, int | None],
        now: float,
        wall: datetime,
    ) -> WorkloadNow:
        """Look at the workload and its clusters.

        `takers` are those that can take its pods, and those that do now; `rooms` says how many each
        has room for, None if that is not known. They weigh what they did when a pod was planned. If
        none was since its pods are counted, they are weighed now, and the weights are kept. Moves
        that were in vain do not count any more where there is more room than then.
        """
        policy, workload, (able, free) = self.policy, self.workload, takers
        if policy.by_capacity and workload.weighting is None:
            workload.weigh(weighing.weigh(policy.shares(nodes), rooms, workload.bound))

        shares = policy.shares(nodes, workload.weights)
        fits = {node: UNBOUNDED if count is None else count for node, count in rooms.items()}
        self.clusters = frozenset(share.node for share in shares)
        for node in free:
            self.under_way.reopen(node, fits[node], now)

        moves = self.under_way.at(now)
        patience, jobs = policy.overflow.after, wanted.reason.moves_jobs
        replicas = replicas_of(workload.members, moves.evicted, wall, patience, moves_jobs=jobs)
        usable = self.clusters - moves.in_backoff
        return WorkloadNow(
            moves=moves,
            replicas=replicas,
            unreplaced=sum(d.is_awaited(wall.timestamp()) for d in workload.deleted),
            limit=wanted.limit.of(len(replicas) + moves.missing.total()),
            shares=tuple(share for share in shares if share.node in able),
            able=able & usable,
            free=free & usable,
            fits=fits,
        )

    def settle(
        self,
        policy: Policy,
        workload: Workload,
        is_there: Callable[[Move], bool],
        now: float,
        wall: datetime,
    ) -> SettledMoves:
        """Look at the pods as they are now, and end the moves that are over."""
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

            self.under_way.leave()
            self.under_way = MovesUnderWay(self.taken)

        if not self.under_way:
            return

        before, evicted = self.under_way.missing(), self.under_way.evicted()
        replicas = replicas_of(workload.members, evicted, wall, policy.overflow.after)
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
        self.under_way.begin(move, self.workload.members.keys())
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

    def confirm(self, wanted: WantedMoves) -> None:
        """Take note that the pod of the last move was evicted."""
        self._refused = self._stuck = ""
        if wanted.demand is not None:
            wanted.demand.count_eviction(len(self.under_way))

    def refuse(self, wanted: WantedMoves, why: str) -> None:
        """Take note that an eviction was refused."""
        self._refused = why
        self.report(wanted, Decision(left=1))

    def report(self, wanted: WantedMoves, decision: Decision) -> bool:
        """Tell whoever asks for these moves what was decided.

        Return whether it is news for the policy why pods stay that are to be moved.
        """
        if wanted.demand is not None:
            wanted.demand.report(decision, len(self.under_way), self._refused)

        if not (decision.is_stuck and wanted.reason.is_told):
            return False

        is_news, self._stuck = self._stuck != decision.why, decision.why
        return is_news

    def close(self, now: float, wall: datetime) -> dict[str, datetime] | None:
        """Take note of where moves were in vain.

        Return where that is news, and until when; None if nothing has changed.
        """
        return self.closed.update(self.under_way.backoffs(now), now, wall)

    def _is_another(self) -> bool:
        """Tell whether the owner was deleted and made anew since the last look.

        Its pods replace none of the former's: they would seem to have arrived elsewhere.
        """
        newest = self.workload.newest
        owner = newest and objects.controller_reference(newest)
        if not owner:
            return False

        before, self._owner = self._owner, owner
        of_one_name = all(before.get(field) == owner.get(field) for field in ("kind", "name"))
        return of_one_name and before.get("uid") != owner.get("uid")
