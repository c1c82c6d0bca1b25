"""What a Rebalance asks for, and its status. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from vnode.api import objects, status_conditions
from vnode.api.objects import Object
from vnode.placement.moves.rebalance_turns import AT_ONCE
from vnode.placement.policies import move_fields
from vnode.planning.move_policy import IntOrPercent

PENDING: Final = "Pending"
PROGRESSING: Final = "Progressing"
COMPLETE: Final = "Complete"
FAILED: Final = "Failed"
CONDITIONS: Final = (PROGRESSING, COMPLETE, FAILED)
NOT_FOUND: Final = "not found"

_NAMES_SHOWN: Final = 5


class RebalancePhase(enum.Enum):
    """How far a Rebalance is."""

    PENDING = PENDING
    PROGRESSING = PROGRESSING
    COMPLETE = COMPLETE
    FAILED = FAILED

    @property
    def is_end(self) -> bool:
        """Whether nothing comes after it."""
        return self in (RebalancePhase.COMPLETE, RebalancePhase.FAILED)


@dataclass(frozen=True, slots=True)
class RebalanceSpec:
    """What a Rebalance asks for, decoded."""

    workloads: frozenset[str] = frozenset()
    """Their keys; empty: all."""
    policy: str = ""
    """The name of a PlacementPolicy; "": any."""
    limit: IntOrPercent = field(default_factory=IntOrPercent)
    ttl: float | None = None
    """Seconds; None: the object stays."""

    def concerns(self, workload: str, policy: str) -> bool:
        """Tell whether it is for a workload, of the policy with that name for messages."""
        if self.workloads and workload not in self.workloads:
            return False

        return not self.policy or policy == f"placementpolicy/{self.policy}"


@dataclass(frozen=True, slots=True)
class RebalanceSums:
    """How far all workloads of a Rebalance are together."""

    workloads: int = 0
    moved: int = 0
    left: int = 0
    under_way: int = 0
    unmet: int = 0
    """Workloads that have not been at their plan yet."""
    why: str = ""
    """Why most of those wait that do; "" if none does."""
    is_news: bool = False
    """Whether one of them is further than when they were summed up last, or less far."""


@dataclass(frozen=True, slots=True)
class RebalanceOutcome:
    """How far a Rebalance is, in words."""

    phase: RebalancePhase
    reason: str
    message: str


def decode(obj: Object) -> RebalanceSpec:
    """Decode a Rebalance. Raises ConfigError, which says what to change."""
    spec = objects.spec(obj)
    names = spec.get("workloads") or ()
    ttl = spec.get("ttlSecondsAfterFinished")
    return RebalanceSpec(
        frozenset(_key(objects.namespace(obj), each) for each in names),
        str(spec.get("policy") or ""),
        move_fields.portion(spec.get("maxConcurrent", 1), "spec.maxConcurrent"),
        None if ttl is None else float(ttl),
    )


def _key(namespace: str, workload: Mapping[str, str]) -> str:
    kind = str(workload.get("kind", "")).lower().removesuffix(".apps").removesuffix(".batch")
    return f"{kind}/{namespace}/{workload.get('name', '')}"


WAITS: Final = RebalanceOutcome(
    RebalancePhase.PENDING,
    "Queued",
    f"waits until others have ended: {AT_ONCE} Rebalances of a namespace are carried out at once",
)
"""Of one that has not begun."""


def judge(sums: RebalanceSums, *, is_stuck: bool) -> RebalanceOutcome:
    """Return how far a Rebalance of these workloads is; `is_stuck` if nothing moves any more."""
    if not sums.workloads:
        message = "no pods of the namespace have a placement policy of mode Spread, Fill or Single"
        return RebalanceOutcome(RebalancePhase.COMPLETE, "NothingPlanned", message)

    if not sums.unmet:
        message = f"{sums.moved} pods of {sums.workloads} workloads were moved; all run as planned"
        return RebalanceOutcome(RebalancePhase.COMPLETE, "Planned", message)

    waits = f": {sums.why}" if sums.why else ""
    if is_stuck:
        message = f"{sums.moved} pods were moved, {sums.left} could not be{waits}"
        return RebalanceOutcome(RebalancePhase.FAILED, "Stuck", message)

    message = f"{sums.moved} pods were moved, {sums.left} are left{waits}"
    return RebalanceOutcome(RebalancePhase.PROGRESSING, "Waiting" if waits else "Moving", message)


def unplanned(problems: Sequence[str], *, may_come: bool) -> RebalanceOutcome:
    """Return the outcome where there is nothing to move of what a Rebalance names.

    What is created together with it may come a moment later.
    """
    more = f"; and {len(problems) - _NAMES_SHOWN} more" if len(problems) > _NAMES_SHOWN else ""
    message = "; ".join(problems[:_NAMES_SHOWN]) + more
    phase = RebalancePhase.PROGRESSING if may_come else RebalancePhase.FAILED
    is_found = all(not problem.endswith(NOT_FOUND) for problem in problems)
    return RebalanceOutcome(phase, "NotPlanned" if is_found else "NotFound", message)


def status(
    obj: Object, sums: RebalanceSums, outcome: RebalanceOutcome, before: int, now: datetime
) -> Object:
    """Build the status; `before` is how many pods a former leader has moved."""
    present = objects.status(obj)
    conditions = [
        status_conditions.build(
            obj, type_, type_ == outcome.phase.value, outcome.reason, outcome.message, now
        )
        for type_ in CONDITIONS
    ]
    said = {
        "phase": outcome.phase.value,
        "message": outcome.message,
        "conditions": status_conditions.merged(obj, *conditions) or present.get("conditions") or [],
    }
    if outcome.phase is RebalancePhase.PENDING:
        return said

    return said | {
        "workloads": sums.workloads,
        "moved": before + sums.moved,
        "underWay": sums.under_way,
        "remaining": sums.left,
        "startTime": present.get("startTime") or objects.timestamp(now),
        **({"completionTime": objects.timestamp(now)} if outcome.phase.is_end else {}),
    }
