"""What is asked of workloads beyond what their policies say by themselves. No I/O.

A change after which a policy reschedules is a demand, and so is each Rebalance: for each workload
that there is at that moment, until it is at its plan. The former ends with the policy that
reschedules, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from vnode.api.objects import Object
from vnode.planning.move_policy import IntOrPercent
from vnode.planning.move_reasons import REASONS, REBALANCE, RESCHEDULE, MoveReason
from vnode.planning.move_state import Decision
from vnode.planning.policy import Policy, WatchedPolicies
from vnode.telemetry import audit


class MovingPolicies(WatchedPolicies, Protocol):
    """The policies that are in force, and their objects."""

    def in_force(self) -> Mapping[str, Policy]:
        """Return them by the keys of their objects."""

    def get(self, key: str) -> Object | None:
        """Return the object of that key."""


class MoveDemand:
    """What somebody asks of one workload."""

    reason: ClassVar[MoveReason]
    is_met: bool = False
    """Whether the workload has been at its plan, or has none any more."""
    limit: IntOrPercent | None = None
    """How much of the workload is moved at once; None: as its policy says."""
    asked_by: audit.Subject | None = None
    """The object that asks it, if another one than the policy."""

    def holds(self, policy: Policy) -> bool:
        """Tell whether it is still for the workload to meet, by its policy."""
        return True

    def report(self, decision: Decision, under_way: int, refused: str = "") -> None:
        """Take note of what was decided, and of why the last eviction was refused."""
        self.is_met = not (decision.left or decision.evictions or under_way)

    def end(self) -> None:
        """Take note that there is nothing to move, or nothing any more."""
        if not self.is_met:
            self.report(Decision(), 0)

    def count_eviction(self, under_way: int) -> None:
        """Take note that a pod was evicted for it."""


@dataclass
class PlanChange(MoveDemand):
    """The plan has changed: pods are to be moved to where they are planned now."""

    reason: ClassVar[MoveReason] = RESCHEDULE
    is_met: bool = False

    def holds(self, policy: Policy) -> bool:
        """Tell whether the policy still moves pods after changes."""
        return bool(policy.reschedule)


@dataclass(eq=False)
class WorkloadRebalance(MoveDemand):
    """What a Rebalance asks of one workload, and how far it has come with it."""

    reason: ClassVar[MoveReason] = REBALANCE
    moved: int = 0
    left: int = 0
    under_way: int = 0
    why: str = ""
    """Why the pods that are left do not move now; "" if none are, or they do."""
    is_met: bool = False
    limit: IntOrPercent | None = None
    changed: Callable[[], None] = lambda: None
    """Called after each change."""
    asked_by: audit.Subject | None = None

    def report(self, decision: Decision, under_way: int, refused: str = "") -> None:
        """Take note of how many pods are left, and why."""
        super().report(decision, under_way)
        self.left, self.under_way = decision.left, under_way
        self.why = (refused or decision.why) if decision.left else ""
        self.changed()

    def count_eviction(self, under_way: int) -> None:
        """Count a pod that was evicted."""
        self.moved += 1
        self.under_way = under_way
        self.changed()


@dataclass(frozen=True, slots=True)
class WantedMoves:
    """Moves of a workload that are wanted for one reason, by its policy or by a demand."""

    reason: MoveReason
    limit: IntOrPercent
    """How much of the workload is moved at once."""
    demand: MoveDemand | None = None
    """The one to meet, the oldest; None if only the policy wants them."""
    asked_by: audit.Subject | None = None
    """The object that asks for them, if another one than the policy."""


class WorkloadDemands:
    """All that is asked of one workload and is not met yet, oldest first."""

    def __init__(self) -> None:
        self._demands: list[MoveDemand] = []

    def add(self, demand: MoveDemand) -> None:
        """Ask for something more."""
        if demand not in self._demands:
            self._demands.append(demand)

    def remove(self, demand: MoveDemand) -> None:
        """Ask for it no longer."""
        if demand in self._demands:
            self._demands.remove(demand)

    def end(self) -> None:
        """Tell whoever asks that there is nothing to move, or nothing any more."""
        for demand in self._demands:
            demand.end()

    def tidy(self, policy: Policy) -> None:
        """Forget what is met, and what is no longer for the workload to meet, by its policy."""
        self._demands = [d for d in self._demands if d.holds(policy) and not d.is_met]

    def wanted(self, policy: Policy, begun: MoveReason | None = None) -> list[WantedMoves]:
        """Return the moves that the policy wants or somebody asks for, what comes first first.

        Those for the reason `begun` come last, if nobody wants them any more.
        """
        oldest = {d.reason: d for d in reversed(self._demands) if not d.is_met}
        reasons = [each for each in REASONS if each in oldest or each.is_wanted(policy)]
        if begun is not None and begun not in reasons:
            reasons.append(begun)

        found, usual = [], policy.failback.max_concurrent
        for reason in reasons:
            demand = oldest.get(reason)
            if demand is None:
                found.append(WantedMoves(reason, usual))
            else:
                limit = usual if demand.limit is None else demand.limit
                found.append(WantedMoves(reason, limit, demand, demand.asked_by))

        return found
