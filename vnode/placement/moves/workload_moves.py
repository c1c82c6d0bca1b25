"""What the mover knows of one workload: its pods as they are now, and the moves under way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.placement.accounts import planned_node
from vnode.placement.counting import key_of
from vnode.placement.moves import situation
from vnode.placement.moves.under_way import Move, MovesUnderWay
from vnode.scheduling.placement.moving import Motive, Replica
from vnode.scheduling.placement.policy import Policy
from vnode.scheduling.workload import Workload

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
        return key_of(self.policy)

    def replicas(self, motive: Motive | None, moves: WorkloadMoves) -> tuple[Replica, ...]:
        """Return its pods but for those that were evicted."""
        evicted = moves.under_way.evicted()
        members = self.workload.members.items()
        return tuple(
            situation.replica_of(m, motive, self._now) for uid, m in members if uid not in evicted
        )

    def has_candidates(self, motive: Motive, nodes: Iterable[Object]) -> bool:
        """Tell whether there may be pods to move, before it is looked at closely."""
        match motive:
            case Motive.FAILBACK:
                members = self.workload.members.values()
                return any(situation.has_overflowed(m.pod) for m in members if m.node)
            case Motive.DRAIN:
                bound, virtual = self.workload.bound, map(planned_node, nodes)
                caps = ((node.name, self.policy.drained_to(node)) for node in virtual)
                return any(cap is not None and bound[name] > cap for name, cap in caps)
            case _:
                return bool(self.workload.bound)

    def newest(self) -> Object | None:
        """Return the pod that was made last."""
        pods = (member.pod for member in self.workload.members.values())
        return max(pods, key=_created, default=None)


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

    def withdraw(self, view: MovableWorkload, move: Move) -> None:
        """Take a move back: its pod was not evicted, and no pod goes to its cluster for it."""
        self.under_way.withdraw(move)
        directed, node = view.workload.directed, move.target
        if directed[node] > 0:
            directed[node] -= 1
        if not directed[node]:
            del directed[node]

    def settle(self, view: MovableWorkload, is_there: Callable[[Move], bool], now: float) -> None:
        """End the moves that are over; what they had directed to their clusters goes with them."""
        if not self.under_way:
            return

        before = self.under_way.missing()
        self.under_way.settle(view.replicas(None, self), is_there, now)
        if not self.under_way:
            for node in before:
                view.workload.directed.pop(node, None)


def _created(pod: Object) -> tuple[str, str]:
    return str(objects.metadata(pod).get("creationTimestamp") or ""), objects.uid(pod)
