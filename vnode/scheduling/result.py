"""Results of a scheduling cycle: the nodes that can take the pod, or why each cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from vnode.scheduling.cycle import CycleState
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import Status


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """A node that can take the pod."""

    node: VirtualNodeInfo
    total: int
    """The sum of its scores, each 0..100 times the weight of its plugin."""
    scores: Mapping[str, int]
    """The weighted score by plugin."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


@dataclass(frozen=True, slots=True)
class CycleResult:
    """Result of a scheduling cycle."""

    status: Status
    """Success if a node can take the pod; else UNSCHEDULABLE, or ERROR if a plugin failed."""
    feasible: tuple[ScoredNode, ...]
    """The nodes that can take it, best first."""
    statuses: Mapping[str, Status]
    """Node name -> why it cannot."""
    nominated: tuple[str, ...]
    """Where PostFilter wants candidates left although these nodes did not pass."""
    excluded: frozenset[str]
    """The nodes that the pod must not be on, even if their targets reserve a place."""
    state: CycleState
    is_undecided: bool = False
    """Whether the pod is to be tried again as if it had not been: its candidates stay meanwhile."""

    def rejections(self) -> dict[str, frozenset[str]]:
        """Return node -> the plugins that rejected it, as `SchedulingQueue.reject` takes it."""
        return {node: frozenset((status.plugin,)) for node, status in self.statuses.items()}

    def full(self) -> Iterator[str]:
        """Yield the nodes that did not pass, but whose targets may overcome that."""
        return (name for name in self.statuses if name not in self.excluded)
