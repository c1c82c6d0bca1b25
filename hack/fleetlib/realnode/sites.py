"""Says where a real node of a cluster is, and what is its own. Pure.

The first is in the cluster's network, beside the control plane. The second has a network, an
address and a range of pods of its own, so that both can use the same ports and names of links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hack.fleetlib.addresses import AddressPlan
    from hack.fleetlib.commands import ClusterSite

_PROCESSES = ("real-node", "real-node-2")


@dataclass(frozen=True, slots=True)
class RealNodeSite:
    cluster: ClusterSite
    number: int
    """0 for the first."""
    cgroup: str
    """Unique on this machine, as the fleet's links are."""
    netns: str | None = None
    """Its own network; None for that of the cluster."""

    @property
    def process(self) -> str:
        return _PROCESSES[self.number]

    @property
    def suffix(self) -> str:
        """What tells its names and files from those of the cluster's first."""
        return self.process.removeprefix(_PROCESSES[0])

    @property
    def name(self) -> str:
        """The name of its Node."""
        return self.cluster.node_name(self.number)

    @property
    def address(self) -> str:
        return self.cluster.nodes[self.number]

    @property
    def folder(self) -> Path:
        return self.cluster.folder / self.process

    @property
    def pod_range(self) -> str:
        """The end of the cluster's range: kwok takes addresses from its start."""
        first, second, _rest = self.cluster.pod_range.split(".", 2)
        return f"{first}.{second}.{200 + self.number}.0/24"

    def log(self, program: str) -> str:
        return self.cluster.file(f"{program}{self.suffix}.log")


def site(cluster: ClusterSite, plan: AddressPlan, index: int, number: int) -> RealNodeSite:
    """Return real node `number` of `cluster`, which has that `index` in the plan."""
    cgroup = f"{plan.prefix}-{index}" + (f"-{number + 1}" if number else "")
    netns = plan.second_netns(index) if number else None
    return RealNodeSite(cluster, number, cgroup, netns)


def number_of(process: str) -> int | None:
    """Return the number of the real node that a process of a cluster is; None for others."""
    return _PROCESSES.index(process) if process in _PROCESSES else None
