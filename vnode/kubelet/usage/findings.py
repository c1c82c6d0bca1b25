"""What a look into a target has found, filled in while looking: what came before an end by time
counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from vnode.kubelet.usage.points import Reading

PodKey: TypeAlias = tuple[str, str]
"""(namespace, name) of a pod in the target."""


@dataclass(slots=True)
class PodReading:
    """The containers of a pod by name; `whole` is the pod's own figure, where there is one."""

    containers: dict[str, Reading] = field(default_factory=dict)
    whole: Reading | None = None


@dataclass(slots=True)
class Findings:
    """Readings of pods and of nodes; `nodes` is None where nodes may not be read.

    `problems` says, for people, what could not be read.
    """

    pods: dict[PodKey, PodReading] = field(default_factory=dict)
    nodes: dict[str, Reading] | None = None
    problems: list[str] = field(default_factory=list)

    def pod(self, key: PodKey) -> PodReading:
        """The entry of a pod, made if it is not there."""
        return self.pods.setdefault(key, PodReading())

    def node(self, name: str, reading: Reading) -> None:
        """Note what a node uses."""
        if self.nodes is None:
            self.nodes = {}

        self.nodes[name] = reading
