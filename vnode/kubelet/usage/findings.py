"""Collects what is read of usage in a target; after a timeout, what was read before it counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from vnode.kubelet.usage import points
from vnode.kubelet.usage.points import Reading

_PROBLEMS: Final = 20
_PROBLEM_LIMIT: Final = 300  # characters
_NODES: Final = 10_000  # of a target; Kubernetes has half as many at most

PodKey: TypeAlias = tuple[str, str]
"""(namespace, name) of a pod in the target."""


@dataclass(slots=True)
class PodReading:
    """Holds readings of a pod's containers by name; `whole` is the pod's own, if there is one."""

    containers: dict[str, Reading] = field(default_factory=dict)
    whole: Reading | None = None


@dataclass(slots=True)
class Findings:
    """Holds readings of pods and of nodes; `nodes` is None where nodes may not be read.

    `problems` says, for people, what could not be read.
    """

    pods: dict[PodKey, PodReading] = field(default_factory=dict)
    nodes: dict[str, Reading] | None = None
    problems: list[str] = field(default_factory=list)

    def problem(self, text: str) -> None:
        """Note what could not be read, shortened because the text may come from the target."""
        if len(self.problems) < _PROBLEMS:
            shortened = text[:_PROBLEM_LIMIT] + "..."
            self.problems.append(text if len(text) <= _PROBLEM_LIMIT else shortened)

    def pod(self, key: PodKey) -> PodReading:
        """Return the entry of a pod, made if it is missing."""
        return self.pods.setdefault(key, PodReading())

    def node(self, name: str, reading: Reading) -> None:
        """Note the reading of a node, unless there are more than any cluster has."""
        if self.nodes is None:
            self.nodes = {}

        if len(self.nodes) < _NODES and points.is_plausible(reading):
            self.nodes[name] = reading

    def container(self, key: PodKey, name: str, reading: Reading) -> None:
        """Note the reading of a container."""
        if points.is_plausible(reading):
            self.pod(key).containers[name] = reading
