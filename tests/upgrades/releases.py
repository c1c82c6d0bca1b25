"""Puts a version of vnode into the clusters of a fleet, and another one in its place."""

from __future__ import annotations

from dataclasses import dataclass

from hack.fleetlib import agents, inventory, state
from hack.fleetlib.agents import AGENTS, CANDIDATE_SCHEDULER, VnodeTree
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.tools import binaries
from tests.kit import Fleet


@dataclass(frozen=True)
class ReleasedFleet:
    """A fleet whose agents are of this version or of another, by `install` and processes."""

    fleet: Fleet

    @property
    def _local(self) -> LocalFleet:
        return LocalFleet(self.fleet.folder)

    def start(self, cluster: str, tree: VnodeTree, *, with_inventory: bool = False) -> None:
        """Install a version in a bare cluster, and start its agents and candidate scheduler.

        `with_inventory` is for a source whose targets are to be in an inventory.
        """
        place, config = self._local.site(cluster), {}
        agents.install(place, tree)
        if with_inventory:
            inventory.install(place)
            plugin = binaries.locate([inventory.PLUGIN])[inventory.PLUGIN]
            config["inventory"] = inventory.agent_config(place, plugin)

        agents.start_agents(self.fleet.folder, place, config=config, tree=tree)
        self._start_scheduler(cluster, tree)

    def _start_scheduler(self, cluster: str, tree: VnodeTree) -> None:
        place = self._local.site(cluster)
        binary = binaries.locate(["kube-scheduler"])["kube-scheduler"]
        agents.start_candidate_scheduler(self.fleet.folder, place, binary, tree)

    def connect(self, source: str, target: str, tree: VnodeTree) -> None:
        agents.connect(self._local.site(source), self._local.site(target), tree)

    def profile(self, source: str, target: str) -> None:
        """Have an inventory give a source its target."""
        inventory.connect(self._local.site(source), self._local.site(target))

    def install(self, cluster: str, tree: VnodeTree) -> None:
        """Apply the CRDs, rights and webhook of a version: the first step of an upgrade."""
        agents.install(self._local.site(cluster), tree)

    def replace(self, cluster: str, agent: str, tree: VnodeTree) -> None:
        """Replace one replica, as a Deployment does."""
        agents.replace_agent(self.fleet.folder, self._local.site(cluster), agent, tree)

    def replace_scheduler(self, cluster: str, tree: VnodeTree) -> None:
        """Replace the candidate scheduler, with the configuration that this version prints."""
        self._local.stop(cluster, CANDIDATE_SCHEDULER)
        self._start_scheduler(cluster, tree)

    @staticmethod
    def version(tree: VnodeTree) -> str:
        """Return the version that agents of a tree say they have."""
        return agents.vnode("--version", tree=tree).split()[-1]

    def stop(self, cluster: str) -> None:
        """End agents and candidate scheduler of a cluster."""
        for process in (CANDIDATE_SCHEDULER, *AGENTS):
            self._local.stop(cluster, process)

    def leader(self, cluster: str, holder: str) -> str:
        """Return the replica that has the identity of a Lease, which ends with its process."""
        processes = state.load(self.fleet.folder).cluster(cluster).processes
        for agent in AGENTS:
            identity = processes[agent].identity
            if identity is not None and holder.rpartition("_")[2] == str(identity.pid):
                return agent

        raise AssertionError(f"no agent of {cluster} is {holder}")
