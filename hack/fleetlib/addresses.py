"""The address plan: which address and port everything of a fleet has. Pure.

A fleet owns one slot (0 to 255), and with it a /24 of 10.201.0.0/16 (root: network namespaces on a
bridge) or of 127.201.0.0/16 (no root: loopback). Each cluster has one address in it, shared by its
control plane and its agent, so ports must not collide: the agent's own are fixed (8080, 9443, 9444,
9448) and virtual nodes take 10250 upwards, hence the schedulers' and kwok's ports below 7000.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from pathlib import Path

Mode = Literal["netns", "loopback"]

SLOTS = 256
CLUSTERS = 60
REPLICAS = 2
REAL_NODES = 2
_FIRST_CLUSTER = 10

ETCD_CLIENT, ETCD_PEER = 2379, 2380
API_SERVER = 6443
CONTROLLER_MANAGER, SCHEDULER, CANDIDATE_SCHEDULER, KWOK = 6257, 6259, 6260, 6247
METRICS_SERVER = 6248
DNS = 53
AGENT_HEALTH, AGENT_WEBHOOK, AGENT_EXTENDER, AGENT_STREAMS = 8080, 9443, 9444, 9448
SERVICE_STATUS = 8081

SERVICE_RANGE = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"


def preferred_slot(directory: Path) -> int:
    """Return the slot to try first: it depends on the directory, so that fleets seldom collide."""
    return hashlib.sha256(str(directory).encode()).digest()[0]


@dataclass(frozen=True, slots=True)
class AddressPlan:
    mode: Mode
    slot: int

    @property
    def prefix(self) -> str:
        """The prefix of the names of all network namespaces and links of the fleet."""
        return f"vn{self.slot:02x}"

    @property
    def host(self) -> str:
        """The machine's own address on the fleet's bridge."""
        return f"10.201.{self.slot}.1" if self.mode == "netns" else "127.0.0.1"

    def cluster(self, index: int) -> str:
        """Return the address of cluster number `index`, counted from 0."""
        if not 0 <= index < CLUSTERS:
            raise FleetError(f"a fleet has at most {CLUSTERS} clusters")
        first = 10 if self.mode == "netns" else 127
        return f"{first}.201.{self.slot}.{_FIRST_CLUSTER + index}"

    def replica(self, index: int, number: int) -> str:
        """Return the address of agent `number` of a cluster; agent 0 has that of the cluster."""
        if not 0 <= number < REPLICAS:
            raise FleetError(f"a cluster has at most {REPLICAS} agents")
        return self._beside(index, number)

    def service(self, index: int) -> str:
        """Return the address of the load balancer of a cluster's agents."""
        return self._beside(index, REPLICAS)

    def real_node(self, index: int, number: int) -> str:
        """Return the address of real node `number` of a cluster; the first has the cluster's."""
        return self._beside(index, REPLICAS + number if number else 0)

    def _beside(self, index: int, step: int) -> str:
        first, last = self.cluster(index).rsplit(".", 1)
        return f"{first}.{int(last) + step * CLUSTERS}"

    def etcd(self, index: int) -> str:
        """Return the address on which etcd of cluster number `index` listens.

        etcd has no TLS here: if possible, it listens only where its own cluster can reach it.
        """
        return "127.0.0.1" if self.mode == "netns" else self.cluster(index)

    @property
    def hub(self) -> str:
        """The network namespace that holds the bridge."""
        return f"{self.prefix}-hub"

    def netns(self, index: int) -> str | None:
        """Return the network namespace of cluster number `index`; None for loopback addresses."""
        return f"{self.prefix}-{index}" if self.mode == "netns" else None

    def second_netns(self, index: int) -> str:
        """Return the network namespace of the cluster's second real node, if it has one."""
        return f"{self.prefix}-{index}-2"

    @staticmethod
    def pod_range(index: int) -> str:
        """Return the range of kwok's pod addresses, where nothing listens."""
        return f"10.{244 - index % 40}.0.0/16"
