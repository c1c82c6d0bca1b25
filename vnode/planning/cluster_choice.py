"""Where one pod of a planned workload may go, as `choosing` has chosen. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """Where a pod may go, and the plan that says so."""

    aim: str
    """The node that it is planned for; "" if maximums leave it over."""
    opened: tuple[tuple[str, float], ...]
    """Nodes by overflow, in order, each with the moment since which it may go there."""
    planned: Mapping[str, int]
    """Node -> pods of the workload; do not change."""
    replicas: int
    """The pods that are planned."""
    since: float | None
    """Since when the pod is unschedulable; None if it was not tried in vain yet."""
    until: float | None
    """When one more cluster is opened, if the pod is still pending then; wall clock."""
    is_surge: bool = False
    """With the pods of older revisions, as many as its maximum are in the planned cluster."""
    directed: str = ""
    """The node beside its aim for which a pod was moved that this one replaces, if any was."""
    full: frozenset[str] = frozenset()
    """Nodes for which the pod has waited in vain until now."""

    def nodes(self) -> tuple[str, ...]:
        """Return all nodes where it may go, best first."""
        return (self.aim, *(node for node, _ in self.opened)) if self.aim else ()
