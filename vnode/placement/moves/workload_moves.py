"""What the mover knows of one workload: its pods as they are now, and the moves under way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.placement.moves import workload_state
from vnode.placement.moves.under_way import Move, MovesUnderWay
from vnode.planning.moving import MoveReason, Replica
from vnode.planning.policy import Mode, Policy
from vnode.planning.policy_node import planned_node
from vnode.planning.unfinished_move import unfinished_move
from vnode.planning.workload import Workload
from vnode.telemetry import metrics

PATIENT: Final = 60.0
"""Seconds after which a workload with pods to move is looked at again at the latest."""


class MovableWorkload:
    """A workload at one moment, with its policy."""

    def __init__(self, policy: Policy, workload: Workload, clock: Clock) -> None:
        self.policy = policy
        self.workload = workload
        self._now = clock.now()

    @property
    def policy_key(self) -> str:
        """The key of the policy's object."""
        return self.policy.key

    def replicas(self, reason: MoveReason | None, moves: WorkloadMoves) -> tuple[Replica, ...]:
        """Return its pods but for those that were evicted."""
        evicted = moves.under_way.evicted()
        patience = self.policy.overflow.after
        return tuple(
            workload_state.replica_of(member, reason, self._now, patience)
            for uid, member in self.workload.members.items()
            if uid not in evicted
        )

    def has_candidates(self, reason: MoveReason, nodes: Iterable[Object]) -> bool:
        """Tell whether there may be pods to move, before it is looked at closely."""
        match reason:
            case _ if self.workload.destination:
                return True
            case MoveReason.FAILBACK:
                members = self.workload.members.values()
                return any(workload_state.has_overflowed(m.pod) for m in members if m.node)
            case MoveReason.DRAIN:
                virtual = map(planned_node, nodes)
                caps = ((node.name, self.policy.drained_to(node)) for node in virtual)
                return any(cap is not None and self._exceeds(name, cap) for name, cap in caps)
            case _:
                return bool(self.workload.bound)

    def _exceeds(self, node: str, cap: int) -> bool:
        """Tell whether pods have to leave a node; where all are together, also for those to come.

        A workload that may not keep all of its pods there leaves it whole.
        """
        bound = self.workload.bound[node]
        return bool(bound) and (len(self.workload.members) if self.is_together else bound) > cap

    @property
    def is_together(self) -> bool:
        """Whether its pods are kept together, and so are moved all or not at all."""
        return self.policy.mode is Mode.SINGLE

    def newest(self) -> Object | None:
        """Return the pod that was made last."""
        pods = (member.pod for member in self.workload.members.values())
        return max(pods, key=_created, default=None)


@dataclass(frozen=True, slots=True)
class ClosedCluster:
    """A cluster to which nothing is moved for a while, since a move to it was in vain."""

    until: datetime
    ends: float
    """The same moment of the monotonic clock."""


class WorkloadMoves:
    """What is kept of a workload from one look to the next."""

    def __init__(self) -> None:
        self.sample: Object = {}
        """One of its pods, as informers keep it; empty before the first look."""
        self.template: Object | None = None
        """One of its pods, whole."""
        self.clusters: frozenset[str] = frozenset()
        """Those that it may go to, as far as they are known."""
        self.settling = 1.0
        """Seconds after which a change of its clusters is looked at."""
        self.under_way = MovesUnderWay()
        self.refused = ""
        """Why the last eviction was refused."""
        self.stuck = ""
        """Why pods stay that are to be moved, as it was told last."""
        self.reason: MoveReason | None = None
        """Why the workload is being moved as one; None if it is not."""
        self.closed: dict[str, ClosedCluster] = {}
        """By node: those to which moves were in vain lately, as it was told."""
        self._owner: Object = {}  # the controller of its newest pod; empty before the first look

    def head_for(self, view: MovableWorkload, node: str, reason: MoveReason) -> bool:
        """Have all pods of a workload that is moved as one go there; tell whether that is news."""
        is_news = view.workload.head_for(node, reason.value)
        self.reason = reason if is_news else self.reason
        return is_news

    def resume(self, view: MovableWorkload) -> bool:
        """Go on with a move that another leader has begun; tell whether there was one."""
        if not view.is_together or view.workload.destination:
            return False

        found = unfinished_move(view.workload)
        return found is not None and self.head_for(view, *found)

    def begin(self, view: MovableWorkload, move: Move) -> None:
        """Add a move, and have the pod that replaces the evicted one go to its cluster."""
        self.under_way.begin(move)
        if not view.is_together:
            view.workload.direct(move.target)

    def withdraw(self, view: MovableWorkload, move: Move) -> None:
        """Take a move back: its pod was not evicted, and no pod goes to its cluster for it."""
        self.under_way.withdraw(move)
        workload, node = view.workload, move.target
        is_pending = any(workload.pending())
        if view.is_together and not (self.under_way or workload.bound[node] or is_pending):
            self.reason = None
            workload.end_move()

        workload.take_back(node)

    def settle(self, view: MovableWorkload, is_there: Callable[[Move], bool], now: float) -> None:
        """End the moves that are over; what they had directed to their clusters goes with them."""
        if self._is_another(view):
            for move in list(self.under_way.moves):
                self.withdraw(view, move)

            self.under_way = MovesUnderWay()

        if not self.under_way:
            return

        before = self.under_way.missing()
        ended = self.under_way.settle(view.replicas(None, self), is_there, now)
        for move, outcome in ended:
            metrics.MOVES.labels(move.reason.value, outcome.value).inc()

        if not self.under_way:
            view.workload.end_directions(before)

    def close(self, now: float, wall: datetime) -> tuple[str, ...] | None:
        """Take note of where moves were in vain; return the nodes that are news, None if no change.

        `now` is of the monotonic clock, and the same moment as `wall`.
        """
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

    def _is_another(self, view: MovableWorkload) -> bool:
        """Tell whether the owner was deleted and made anew since the last look.

        Its pods replace none of the former's: they would seem to have arrived elsewhere.
        """
        newest = view.newest()
        owner = newest and objects.controller_reference(newest)
        if not owner:
            return False

        before, self._owner = self._owner, owner
        of_one_name = all(before.get(field) == owner.get(field) for field in ("kind", "name"))
        return of_one_name and before.get("uid") != owner.get("uid")

    def has_arrived(self, view: MovableWorkload) -> bool:
        """Tell whether all pods of a workload that was moved as one are where they were to go.

        One that is no longer kept together goes nowhere.
        """
        goal, bound = view.workload.destination, view.workload.bound
        is_there = not self.under_way and bound.keys() <= {goal}
        return bool(goal) and (is_there or not view.is_together)


def _created(pod: Object) -> tuple[str, str]:
    return str(objects.metadata(pod).get("creationTimestamp") or ""), objects.uid(pod)
