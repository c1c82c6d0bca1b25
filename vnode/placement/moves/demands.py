"""Knows for what reasons a workload is looked at, beyond what its policy says by itself.

A change after which its policy reschedules, and each Rebalance, is a demand: it holds for the
workloads that there are at that moment, for each until it is at its plan. The former ends with the
policy that reschedules, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.planning.move_policy import FailbackMode, IntOrPercent
from vnode.planning.moving import Decision, MoveReason
from vnode.planning.policy import Mode, Policy


class PlannedWorkload(NamedTuple):
    """A workload of a policy that plans."""

    workload: str
    group_by: str


@dataclass(slots=True)
class WorkloadProgress:
    """How far a Rebalance has come with one workload."""

    moved: int = 0
    left: int = 0
    under_way: int = 0
    why: str = ""
    """Why the pods that are left do not move now; "" if none are, or they do."""
    is_known: bool = False
    """The workload has been looked at."""

    @property
    def is_done(self) -> bool:
        """Whether the workload is at its plan."""
        return self.is_known and not self.left and not self.under_way


@dataclass(slots=True, eq=False)
class RebalanceDemand:
    """What a Rebalance asks for."""

    limit: IntOrPercent
    changed: Callable[[], None]
    """Called after each change of the progress."""
    progress: dict[PlannedWorkload, WorkloadProgress] = field(default_factory=dict)
    """Of its workloads, all of them."""


class MoveDemands:
    """The demands that are not met yet."""

    def __init__(self) -> None:
        self._rescheduled: set[PlannedWorkload] = set()
        self._rebalances: list[RebalanceDemand] = []  # oldest first

    def add(self, rebalance: RebalanceDemand) -> None:
        """Begin with a Rebalance."""
        self._rebalances.append(rebalance)

    def remove(self, rebalance: RebalanceDemand) -> None:
        """Forget a Rebalance."""
        if rebalance in self._rebalances:
            self._rebalances.remove(rebalance)

    def reschedule(self, key: PlannedWorkload) -> None:
        """Have the pods of a workload moved to where they are planned now."""
        self._rescheduled.add(key)

    def stay(self, key: PlannedWorkload) -> None:
        """Move no more pods of a workload because of a change: its policy wants it no longer."""
        self._rescheduled.discard(key)

    def forget(self, key: PlannedWorkload) -> None:
        """Drop what is asked for about a workload that has no pods, or no plan, any more."""
        self._rescheduled.discard(key)
        for rebalance in self._rebalances:
            progress = rebalance.progress.get(key)
            if progress is not None and not progress.is_done:
                progress.is_known, progress.left, progress.under_way = True, 0, 0
                rebalance.changed()

    def concerns(self, key: PlannedWorkload) -> bool:
        """Tell whether there is a demand for the workload."""
        return key in self._rescheduled or self._rebalance(key) is not None

    def reasons(self, key: PlannedWorkload, policy: Policy) -> list[MoveReason]:
        """Return for what reasons to move pods of a workload, the first one first."""
        found = [MoveReason.DRAIN] if policy.drains else []
        if self._rebalance(key) is not None:
            found.append(MoveReason.REBALANCE)

        if key in self._rescheduled:
            found.append(MoveReason.RESCHEDULE)

        if policy.failback.mode is not FailbackMode.NEVER and policy.mode is not Mode.SINGLE:
            found.append(MoveReason.FAILBACK)

        return found

    def limit(self, key: PlannedWorkload, reason: MoveReason, policy: Policy) -> IntOrPercent:
        """Return how much of a workload is moved at once."""
        rebalance = self._rebalance(key) if reason is MoveReason.REBALANCE else None
        return policy.failback.max_concurrent if rebalance is None else rebalance.limit

    def moved(self, key: PlannedWorkload, reason: MoveReason, moves: WorkloadMoves) -> None:
        """Count a pod that was evicted."""
        rebalance = self._rebalance(key) if reason is MoveReason.REBALANCE else None
        if rebalance is not None:
            progress = rebalance.progress[key]
            progress.moved += 1
            progress.under_way = len(moves.under_way)
            rebalance.changed()

    def report(
        self, key: PlannedWorkload, reason: MoveReason, moves: WorkloadMoves, decision: Decision
    ) -> None:
        """Take note of what was decided about a workload for one of its reasons."""
        under_way = len(moves.under_way)
        if reason is MoveReason.RESCHEDULE and not (
            decision.left or decision.evictions or under_way
        ):
            self._rescheduled.discard(key)

        rebalance = self._rebalance(key) if reason is MoveReason.REBALANCE else None
        if rebalance is not None:
            progress = rebalance.progress[key]
            progress.is_known = True
            progress.left, progress.under_way = decision.left, under_way
            progress.why = (moves.refused or decision.why) if decision.left else ""
            rebalance.changed()

    def _rebalance(self, key: PlannedWorkload) -> RebalanceDemand | None:
        for rebalance in self._rebalances:
            progress = rebalance.progress.get(key)
            if progress is not None and not progress.is_done:
                return rebalance

        return None
