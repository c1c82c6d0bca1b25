"""Manages fleets: clusters that were started together in a directory.

Tests and the demo use `LocalFleet` and `up`; `hack/fleet` is a thin command line over them.
Everything that was started is in the state file, so a `LocalFleet` can be made for a directory at
any time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hack.fleetlib import (
    addresses,
    agents,
    cachefolder,
    clusters,
    inventory,
    kwok,
    kwok_restarts,
    metricsserver,
    networks,
    processes,
    progress,
    side_by_side,
    state,
    streams,
)
from hack.fleetlib.api import Api
from hack.fleetlib.errors import FleetError
from hack.fleetlib.realnode import node as realnode
from hack.fleetlib.realnode import sites
from hack.fleetlib.tools import binaries, catalogue, kubernetes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hack.fleetlib.commands import ClusterSite
    from hack.fleetlib.realnode.sites import RealNodeSite


@dataclass(frozen=True, slots=True)
class FleetOptions:
    """What `up` starts. `connections` are pairs of source and target, both in `names`."""

    names: Sequence[str]
    clusters: clusters.ControlPlaneOptions = field(default_factory=clusters.ControlPlaneOptions)
    agents: bool = False
    candidate_scheduler: bool = True
    replicas: int = 1  # agents in each cluster
    connections: Sequence[tuple[str, str]] = ()
    inventory: bool = False  # connect by ClusterProfiles
    agent_arguments: tuple[str, ...] = ()
    metrics_server: bool = False
    real_nodes: Sequence[str] = ()  # the names of their clusters, twice for a second node
    bare: Sequence[str] = ()  # clusters without anything of vnode's
    real_node: realnode.NodeOptions = field(default_factory=realnode.NodeOptions)
    kubernetes: Mapping[str, str] = field(default_factory=dict)
    """The releases of clusters, by name; others are as $VNODE_FLEET_KUBERNETES says, or usual."""

    def versions(self) -> dict[str, str]:
        """Return the release of Kubernetes that each cluster has; FleetError if it is unknown."""
        words = os.environ.get("VNODE_FLEET_KUBERNETES", "").replace(",", " ").split()
        known = kubernetes.assigned(words, self.names) | dict(self.kubernetes)
        return {name: known.get(name, kubernetes.DEFAULT) for name in self.names}

    def programs(self) -> list[str]:
        """Return the names of the programs that the fleet needs."""
        return [
            *catalogue.USUAL,
            *([metricsserver.PROCESS] if self.metrics_server else []),
            *(self.real_node.programs if self.real_nodes else []),
            *([inventory.PLUGIN] if self.inventory else []),
        ]

    def check(self) -> None:
        """Raise FleetError for names that are invalid, duplicate, or connected but absent."""
        for name in self.names:
            if not _is_label(name):
                raise FleetError(f"{name!r} cannot name a cluster: use a-z, 0-9 and -, up to 40")
        if len(set(self.names)) != len(self.names):
            raise FleetError("two clusters of a fleet cannot have the same name")
        if not 1 <= self.replicas <= addresses.REPLICAS:
            raise FleetError(f"--replicas must be 1 to {addresses.REPLICAS}")
        named: dict[str, Iterable[str]] = {
            "--connect": [end for connection in self.connections for end in connection],
            "--real-node": self.real_nodes,
            "--bare": self.bare,
            "--kubernetes": self.kubernetes,
        }
        for option, wanted in named.items():
            if missing := sorted(set(wanted) - set(self.names)):
                raise FleetError(f"{option} names {missing[0]!r}, which is not started here")
        if self.connections and not self.agents:
            raise FleetError("--connect needs --agents")
        if self.inventory and not self.connections:
            raise FleetError("--inventory says how clusters are connected: add --connect")
        self._check_real_nodes()

    def _check_real_nodes(self) -> None:
        if self.real_node != realnode.NodeOptions() and not self.real_nodes:
            raise FleetError("--services and --images are for real nodes: add --real-node")
        if any(self.real_nodes.count(name) > addresses.REAL_NODES for name in self.names):
            raise FleetError(f"a cluster has at most {addresses.REAL_NODES} real nodes")
        self.real_node.check()


def _is_label(name: str) -> bool:
    plain = name.replace("-", "")
    return (
        name.isascii()
        and plain.isalnum()
        and name == name.lower()
        and (len(name) <= 40 and name[0] != "-" and name[-1] != "-")
    )


@dataclass(frozen=True, slots=True)
class LocalFleet:
    """A running fleet, by its directory."""

    directory: Path

    def state(self) -> state.State:
        return state.load(self.directory)

    def site(self, name: str) -> ClusterSite:
        return clusters.site(self.directory, self.state(), name)

    def real_node(self, name: str, number: int = 0) -> RealNodeSite:
        """Return where a real node of a cluster is, counted from 0."""
        known = self.state()
        return sites.site(self.site(name), known.plan, known.cluster(name).index, number)

    def kubeconfig(self, name: str) -> Path:
        return self.site(name).kubeconfig

    def address(self, name: str) -> str:
        return self.state().cluster(name).address

    def api(self, name: str) -> Api:
        return Api(self.kubeconfig(name))

    def log(self, name: str, process: str) -> Path:
        return Path(self.state().process(name, process).log)

    def stop(self, name: str, process: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End a process of a cluster and wait for its end."""
        processes.stop(self.directory, name, process, number)

    def start(self, name: str, process: str) -> None:
        """Start a process again as at first; if others depend on it, wait until it is ready."""
        if (number := sites.number_of(process)) is not None:
            realnode.start_again(self.directory, self.real_node(name, number))
            return
        if process == "kwok":
            kwok_restarts.release_nodes(self.api(name))
        processes.start(self.directory, name, process)
        if process in agents.AGENTS:
            agents.wait_for_agent(self.directory, self.site(name), process)
        elif process == "kube-apiserver":
            clusters.until(self.directory, name, process, self.api(name).ready)
        elif process == "kwok":
            kwok_restarts.wake_pods(self.api(name))

    def send_signal(self, name: str, process: str, number: signal.Signals) -> None:
        """Signal a process of a cluster, if it runs: SIGSTOP freezes it, SIGCONT undoes that."""
        known = self.state().process(name, process).identity
        if known is not None:
            known.send(number)

    def partition(self, name: str) -> None:
        """Cut a cluster off from the others and from this machine; it runs on by itself.

        Without network namespaces its API server is frozen instead, which also freezes the cluster.
        Of two real nodes only the first stays with it.
        """
        self._plug(name, up=False)

    def heal(self, name: str) -> None:
        """Undo `partition`."""
        self._plug(name, up=True)

    def _plug(self, name: str, *, up: bool) -> None:
        with state.changing(self.directory) as fleet:
            cluster = fleet.cluster(name)
            if fleet.mode == "netns":
                networks.link(fleet.plan, cluster.index, up=up)
            else:
                server = fleet.process(name, "kube-apiserver").identity
                if server is not None:
                    server.send(signal.SIGCONT if up else signal.SIGSTOP)
            cluster.partitioned = not up

    def add_nodes(self, name: str, count: int = 1, size: kwok.NodeSize | None = None) -> list[str]:
        """Add kwok nodes to a cluster and wait until they are Ready; returns their names."""
        api, place = self.api(name), self.site(name)
        taken = [n["metadata"]["name"] for n in api.call("GET", "/api/v1/nodes")["items"]]
        prefix = f"{name}-node-"
        numbers = [int(t.removeprefix(prefix)) for t in taken if t.removeprefix(prefix).isdigit()]
        if "kwok" not in self.state().cluster(name).processes:
            raise FleetError(f"{name} was started with --nodes 0, so no kwok runs there")
        first = max(numbers, default=-1) + 1
        names = clusters.create_nodes(api, place, count, size or kwok.NodeSize(), first)
        api.wait_for_nodes(names, clusters.READY_SECONDS)
        return names

    def connect(self, source: str, target: str) -> None:
        """Make `target` a target of `source`, in namespace default; waits for the virtual node."""
        agents.connect(self.site(source), self.site(target))

    def down(self) -> None:
        """End everything that was started, and remove every file and link.

        Kills all processes: their data is deleted anyway, and an API server waits long for clients.
        """
        with state.changing(self.directory) as fleet:
            running = [p for cluster in fleet.clusters.values() for p in cluster.processes.values()]
            processes.end(running, signal.SIGKILL)
            fleet.ending = True
        for cluster in fleet.clusters.values():
            for process in cluster.processes:
                if (number := sites.number_of(process)) is not None:
                    realnode.remove(self.real_node(cluster.name, number))
        networks.remove(fleet.plan, len(fleet.clusters))
        for name in fleet.clusters:
            shutil.rmtree(self.directory / name, ignore_errors=True)
            (self.directory / f"kubeconfig-{name}").unlink(missing_ok=True)
        Path(fleet.claim).unlink(missing_ok=True)
        for file in (".lock", ".state.json.new", "state.json"):
            (self.directory / file).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.directory.rmdir()


def up(directory: Path, options: FleetOptions) -> LocalFleet:
    """Start a fleet; on any failure, also Ctrl-C, everything is taken down again."""
    options.check()
    directory = directory.resolve()
    if state.path(directory).exists():
        raise FleetError(f"there is a fleet in {directory} already: hack/fleet down {directory}")
    if options.metrics_server:
        metricsserver.check(networks.mode())
    if options.real_nodes:
        realnode.check(networks.mode())
    programs = _programs(options)
    directory.mkdir(parents=True, exist_ok=True)
    _claim(directory, options)
    fleet = LocalFleet(directory)
    try:
        networks.create(fleet.state().plan, len(options.names))
        _bring_up(fleet, options, programs)
    except BaseException:
        fleet.down()
        raise
    return fleet


_Programs = dict[str, dict[str, Path]]  # of each cluster, by name


def _programs(options: FleetOptions) -> _Programs:
    """Return the programs of each cluster, got first if they are missing."""
    versions = options.versions()
    found = {
        version: binaries.locate(options.programs(), version) for version in set(versions.values())
    }
    return {name: found[version] for name, version in versions.items()}


def _claim(directory: Path, options: FleetOptions) -> None:
    """Claim addresses and write the first state, atomically among all processes of this user."""
    versions = options.versions()
    with cachefolder.locked("fleets", lambda: None):
        plan, claim = networks.claim(directory, networks.mode())
        known = {
            name: state.Cluster(
                name,
                index,
                plan.cluster(index),
                plan.netns(index),
                replicas=options.replicas,
                kubernetes=versions[name],
            )
            for index, name in enumerate(options.names)
        }
        state.save(directory, state.State(plan.mode, plan.slot, str(claim), known))


def _bring_up(fleet: LocalFleet, options: FleetOptions, programs: _Programs) -> None:
    sites = [fleet.site(name) for name in options.names]
    for place in sites:
        clusters.write_files(place, usage=options.metrics_server)
    with progress.reported(f"starting {', '.join(options.names)}"):
        side_by_side.each(
            sites,
            lambda place: clusters.bring_up(
                fleet.directory, place, programs[place.name], options.clusters
            ),
        )
    if options.metrics_server:
        with progress.reported("starting metrics servers"):
            side_by_side.each(
                sites,
                lambda place: metricsserver.start(
                    fleet.directory, place, programs[place.name][metricsserver.PROCESS]
                ),
            )
    if options.real_nodes:
        with progress.reported("starting real nodes"):
            each = [fleet.real_node(*pair) for pair in _numbered(options.real_nodes)]
            side_by_side.each(each, lambda node: _add_real_node(fleet, node, options.real_node))
    if options.agents:
        with progress.reported("starting agents"):
            ours = [place for place in sites if place.name not in options.bare]
            side_by_side.each(
                ours, lambda place: _add_agent(fleet, place, options, programs[place.name])
            )
    if options.connections:
        names = ", ".join(f"{source} to {target}" for source, target in options.connections)
        with progress.reported(f"connecting {names}"):
            way = inventory.connect if options.inventory else agents.connect
            side_by_side.each(options.connections, lambda pair: way(*map(fleet.site, pair)))


def _numbered(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return each name with how often it was there before."""
    return [(name, names[:place].count(name)) for place, name in enumerate(names)]


def _add_real_node(fleet: LocalFleet, node: RealNodeSite, options: realnode.NodeOptions) -> None:
    if node.netns is not None:
        known = fleet.state()
        cluster = known.cluster(node.cluster.name)
        first = fleet.real_node(cluster.name)
        networks.add_node(known.plan, cluster.index, [first.pod_range, node.pod_range])
    version = fleet.state().cluster(node.cluster.name).kubernetes
    realnode.start(fleet.directory, node, options, version)


def _add_agent(
    fleet: LocalFleet, place: ClusterSite, options: FleetOptions, programs: dict[str, Path]
) -> None:
    agents.install(place)
    config: dict[str, Any] = {}
    if options.inventory and place.name in {source for source, _target in options.connections}:
        inventory.install(place)
        config["inventory"] = inventory.agent_config(place, programs[inventory.PLUGIN])
    agents.start_agents(fleet.directory, place, options.agent_arguments, config)
    streams.publish(place, agents.NAMESPACE)
    if options.candidate_scheduler:
        binary = programs["kube-scheduler"]
        agents.start_candidate_scheduler(fleet.directory, place, binary)
