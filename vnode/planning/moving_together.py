"""Decides how a workload that is kept together (mode Single) is moved: all of it or nothing. Pure.

The cluster that it goes to, its destination, is chosen when the first pod is evicted, and has to
have room for all of them then. The others follow one by one, and no other cluster is chosen as long
as that one takes pods. Pods that wait go there first, and without an eviction: they have no place,
and while they wait a disruption budget may allow none. While a workload is at one place that the
reason has nothing against, it is left alone: there is no plan by which another place would be
better.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from vnode.planning.choosing import most
from vnode.planning.move_policy import STARTING
from vnode.planning.move_reasons import MoveReason
from vnode.planning.move_state import Decision, PlannedEviction, Replica, WorkloadState
from vnode.planning.seats import Share


def decide_together(now: WorkloadState, reason: MoveReason, most: int | None = None) -> Decision:
    """Return the next steps, `most` of them if that is given; what is left is without these.

    There are none for a workload that is where it may stay, or has no place.
    """
    workload = _WholeWorkload(now)
    if not now.destination and reason.may_stay(now, workload.there):
        return Decision()

    goal = workload.goal()
    if not goal:
        why = f"no other cluster has room for all {workload.replicas} of its pods"
        return Decision((), workload.bound, why, is_stuck=True)

    going = workload.elsewhere(goal)
    if not now.destination and not all(replica.movable for replica in going):
        why = "some of its pods cannot be moved, and it is kept together"
        return Decision((), len(going), why, is_stuck=True)

    movable = [replica for replica in going if replica.movable]
    decision = workload.evictions(goal, movable, len(movable) if most is None else most)
    heads_for = goal if decision.evictions or workload.is_waiting else ""
    return replace(decision, destination=heads_for)


class _WholeWorkload:
    """A workload whose pods are to be in one cluster."""

    def __init__(self, now: WorkloadState) -> None:
        self._now = now
        self._able = {share.node: share for share in now.seats.ranked}
        self.there = Counter(r.node for r in now.replicas if r.bound)
        self.is_waiting = any(r.waiting for r in now.replicas)
        home = now.destination or most(self.there)
        self._room = {
            node: n for node, n in now.room.items() if node != home or not self.is_waiting
        }
        self.bound = self.there.total()
        self.replicas = now.total

    def goal(self) -> str:
        """Return the cluster for all pods: that where the fewest have to move; "" if none will do.

        One that was chosen before stays as long as it takes pods.
        """
        chosen = self._able.get(self._now.destination)
        if chosen is not None and self._may_hold_all(chosen):
            return chosen.node

        enough = [
            share.node
            for share in self._now.seats.ranked
            if self._may_hold_all(share)
            and self._room.get(share.node, 0) >= self.replicas - self.there[share.node]
        ]
        return min(enough, key=lambda n: (-self.there[n], -self._room.get(n, 0), n), default="")

    def elsewhere(self, goal: str) -> list[Replica]:
        """Return the pods that have to move there: those outside of the policy's clusters first."""

        def order(replica: Replica) -> tuple[bool, int, str, bool, float, str]:
            node = replica.node
            is_included = node in self._now.included
            return is_included, self.there[node], node, replica.ready, -replica.age, replica.uid

        return sorted((r for r in self._now.replicas if r.bound and r.node != goal), key=order)

    def evictions(self, goal: str, going: list[Replica], most: int) -> Decision:
        """Return the next steps to a cluster, as far as it has room at this moment."""
        unready = [r for r in self._now.replicas if not r.ready and r.age < STARTING]
        waiting = sum(r.waiting for r in unready)
        started = max(self._now.under_way, self._now.unreplaced + len(unready) - waiting)
        # Those that wait keep no move from beginning, which gives them a place. They may be there
        # instead of pods that another leader has evicted, and count as such until they are ready.
        busy = max(self._now.under_way, self._now.unreplaced + len(unready))
        room = self._room.get(goal, 0) - (self.replicas - self.bound)
        limit = self._now.limit if self._now.destination or not started else 0
        count = max(0, min(limit - busy, room, len(going), most))
        there = self.there.copy()
        evictions = []
        for replica in going[:count]:
            eviction = PlannedEviction(
                replica.uid, replica.node, goal, there[replica.node], 0, self.replicas
            )
            evictions.append(eviction)
            there[replica.node] -= 1

        left = len(going) - count
        if not left:
            return Decision(tuple(evictions))

        if room <= count and not started:
            return Decision(tuple(evictions), left, "no room", (goal,), is_stuck=True)

        moving = f"{busy + count} of its pods are being moved or not ready"
        return Decision(tuple(evictions), left, moving)

    def _may_hold_all(self, share: Share) -> bool:
        return share.maximum is None or share.maximum >= self.replicas
