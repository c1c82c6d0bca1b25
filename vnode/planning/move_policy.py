"""What a policy says of moving pods that run, and when there is room to move one to. No I/O.

A policy by itself says where a pod begins. These fields say when a pod that runs is moved: back to
where it was planned (`failback`), out of a cluster that is to have fewer (`drain`), or after a
change (`reschedule`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final, Protocol

STABILIZATION: Final = 300.0
"""Seconds for which estimates must have shown room, unless a policy says otherwise."""
TRIED_AGAIN: Final = 10.0
"""Seconds after which a target's scheduler has tried each pod again that it had no place for."""
STARTING: Final = 600.0
"""Seconds for which a pod that is not ready counts as being moved, or rolled out: so long the
workload is not disturbed further."""


class FailbackMode(enum.Enum):
    """How it is found out that a pod that overflowed could run where it was planned."""

    PLACEHOLDER = "Placeholder"
    """A candidate that it left there could start."""
    PROBE = "Probe"
    """The scheduler's filters would let it go there."""
    NEVER = "Never"


class RescheduleTrigger(enum.Enum):
    """A change after which pods that run may be moved to where they are planned then."""

    POLICY = "PolicyChanged"
    CLUSTERS = "ClusterJoined"
    LABELS = "LabelsChanged"
    DECISION = "DecisionChanged"


@dataclass(frozen=True, slots=True)
class IntOrPercent:
    """A number of pods, or a part of all."""

    amount: int = 1
    is_percentage: bool = False

    def of(self, replicas: int) -> int:
        """Return how many of so many that is, at least 1."""
        return max(1, replicas * self.amount // 100) if self.is_percentage else self.amount


@dataclass(frozen=True, slots=True)
class Failback:
    """When pods that overflowed go back."""

    mode: FailbackMode = FailbackMode.PLACEHOLDER
    stabilization: float | None = None
    """Seconds for which there must have been room all the time; None: the defaults."""
    max_concurrent: IntOrPercent = IntOrPercent()
    """How much of a workload is moved at once; counts for drain and reschedule, too."""

    def stable_after(self, *, is_asked: bool) -> float:
        """Return for how many seconds there must have been room.

        Where a placeholder `is_asked`, its target itself has found a place for it; there an
        autoscaler may be, which removes a node that nobody uses after some twenty seconds.
        """
        if self.stabilization is not None:
            return self.stabilization

        return TRIED_AGAIN if is_asked else STABILIZATION


@dataclass(frozen=True, slots=True)
class Drain:
    """A cluster that is to have no more than so many pods of each workload."""

    cluster: str
    """The name of a Target or ClusterTarget, or of its virtual node."""
    maximum: int = 0
    until: float | None = None
    """Wall clock; None: for ever."""


class Openings(Protocol):
    """Knows where further pods of workloads could start."""

    def since(self, workload: str, node: str) -> float | None:
        """Return since when a pod of the workload could have started on the node without a break.

        The moment is one of the monotonic clock; None if none could start there now. The workload
        is the key of `vnode.planning.workload_key`, the node a virtual one.
        """

    def refuted(self, workload: str, node: str) -> float | None:
        """Return when (monotonic) something that said so ceased to; None if nothing did lately."""
