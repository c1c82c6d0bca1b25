"""What a look into a target has found, filled in while looking: what came before an end by time
counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from vnode.kubelet.usage import points
from vnode.kubelet.usage.points import Reading

_PROBLEMS: Final = 20
_WORDS: Final = 300  # characters of each

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

    def problem(self, text: str) -> None:
        """Note what could not be read: briefly, since others may choose the words."""
        if len(self.problems) < _PROBLEMS:
            self.problems.append(text if len(text) <= _WORDS else text[:_WORDS] + "...")

    def pod(self, key: PodKey) -> PodReading:
        """The entry of a pod, made if it is not there."""
        return self.pods.setdefault(key, PodReading())

    def node(self, name: str, reading: Reading) -> None:
        """Note what a node uses."""
        if self.nodes is None:
            self.nodes = {}

        if points.plausible(reading):
            self.nodes[name] = reading

    def container(self, key: PodKey, name: str, reading: Reading) -> None:
        """Note what a container uses."""
        if points.plausible(reading):
            self.pod(key).containers[name] = reading
