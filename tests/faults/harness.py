"""Runs a fleet whose agents reach every API server through a fault proxy of their own.

The fleet is started as for any test; then each agent's kubeconfig is pointed at its fault proxy,
and the Targets are made by `vnode connect --server PROXY`. Tests themselves go straight to the API
servers. Processes that end are started again, as a kubelet would, unless a fault holds them down.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import yaml

from hack.fleetlib import addresses, agents, clusters, kubeconfigs, processes
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from tests.faults.plan import FAULT_PROXIES, SOURCE, TARGETS
from tests.faults.proxy import FaultProxy, ProxiedServer
from vnode.kube import endpoint
from vnode.kube.client import Client

CLUSTERS = (SOURCE, *TARGETS)
KEPT = (
    *agents.AGENTS,
    agents.CANDIDATE_SCHEDULER,
    "kube-apiserver",
    "kube-controller-manager",
)  # what faults may end
_LOOK = 0.5  # seconds between looks at what has ended


class Harness:
    """The fleet, its fault proxies, and administrators' clients; use `running`."""

    def __init__(
        self,
        fleet: LocalFleet,
        fault_proxies: dict[str, FaultProxy],
        urls: dict[str, str],
        clients: dict[str, Client],
    ) -> None:
        self.fleet = fleet
        self.fault_proxies = fault_proxies
        self.urls = urls
        self.clients = clients
        self.held: Counter[str] = Counter()  # CLUSTER/PROCESS -> the faults that hold it down
        self.outages: dict[str, float] = {}  # cluster -> when (monotonic) its API server was mended
        self.ends: Counter[str] = Counter()  # CLUSTER/PROCESS -> ends that no fault has caused
        self._absent: set[str] = set()  # CLUSTER/PROCESS that an administrator took away
        self._starting = asyncio.Lock()

    @property
    def source(self) -> Client:
        """The cluster that sends pods."""
        return self.clients[SOURCE]

    async def kill(self, where: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End a process, and keep it down until `release`."""
        self.held[where] += 1
        async with self._starting:
            with suppress(FleetError):
                cluster, process = where.split("/")
                await asyncio.to_thread(self.fleet.stop, cluster, process, number)

    async def take_away(self, cluster: str, names: Iterable[str]) -> None:
        """End processes, which stay down, also when all is mended, until `give_back`."""
        async with self._starting:
            for name in names:
                self._absent.add(f"{cluster}/{name}")
                with suppress(FleetError):
                    await asyncio.to_thread(self.fleet.stop, cluster, name)

    def give_back(self, cluster: str, names: Iterable[str]) -> None:
        """Let processes that were taken away be started again, and kept running."""
        self._absent.difference_update(f"{cluster}/{name}" for name in names)

    async def freeze(self, where: str) -> None:
        """Have a process do nothing, though all its connections stay, until `thaw`."""
        cluster, process = where.split("/")
        await asyncio.to_thread(self.fleet.send_signal, cluster, process, signal.SIGSTOP)

    async def thaw(self, where: str) -> None:
        """Have a process go on; nothing happens to one that is not frozen."""
        cluster, process = where.split("/")
        await asyncio.to_thread(self.fleet.send_signal, cluster, process, signal.SIGCONT)

    async def release(self, where: str) -> None:
        """Let a process be started again."""
        self.held[where] -= 1

    async def keep(self) -> None:
        """Start what has ended, until cancelled."""
        while True:
            await self.start_what_ended()
            await asyncio.sleep(_LOOK)

    async def start_what_ended(self) -> None:
        """Start what has ended and no fault holds down."""
        async with self._starting:
            for cluster, known in self.fleet.state().clusters.items():
                for name, process in known.processes.items():
                    where = f"{cluster}/{name}"
                    down = self.held[where] > 0 or where in self._absent
                    if name in KEPT and not process.alive and not down:
                        if where not in self.held:
                            self.ends[where] += 1

                        self.held.pop(where, None)
                        args = (self.fleet.directory, cluster, name)
                        await asyncio.to_thread(processes.start, *args)

    async def heal(self) -> None:
        """Mend all fault proxies, start all processes, and wait until they are ready."""
        for fault_proxy in self.fault_proxies.values():
            fault_proxy.heal()

        for where in self.held:
            self.held[where] = 0

        await self.start_what_ended()
        for cluster in CLUSTERS:
            ready = self.fleet.api(cluster).ready
            name = "kube-apiserver"
            await self.thaw(f"{cluster}/{name}")
            await asyncio.to_thread(clusters.until, self.fleet.directory, cluster, name, ready)


@asynccontextmanager
async def running(fleet: LocalFleet, dice: random.Random) -> AsyncIterator[Harness]:
    """Run fault proxies in front of a fleet; inside, c1 is connected to the other clusters.

    The fleet has clusters c1, c2 and c3 with agents.
    """
    fault_proxies: dict[str, FaultProxy] = {}
    urls: dict[str, str] = {}
    for name in FAULT_PROXIES:
        there = name.partition(">")[2]
        place = fleet.site(there)
        upstream = ProxiedServer(place.address, addresses.API_SERVER, place.folder / "pki")
        own = random.Random(dice.random())
        fault_proxies[name] = FaultProxy(name, upstream, own)
        urls[name] = await fault_proxies[name].start(fleet.state().plan.host)

    try:
        async with _clients(fleet) as clients:
            harness = Harness(fleet, fault_proxies, urls, clients)
            for name in CLUSTERS:
                point_at(fleet.site(name).folder / "vnode.kubeconfig", urls[f"{name}>{name}"])

            await harness.heal()  # an earlier run may have ended in the middle of a fault
            await asyncio.gather(*(_restart_agents(fleet, name) for name in CLUSTERS))
            for target in TARGETS:
                await asyncio.to_thread(connect, fleet, target, urls[f"{SOURCE}>{target}"])

            yield harness
    finally:
        for fault_proxy in fault_proxies.values():
            await fault_proxy.close()


@asynccontextmanager
async def _clients(fleet: LocalFleet) -> AsyncIterator[dict[str, Client]]:
    where = {name: endpoint.from_kubeconfig_file(fleet.kubeconfig(name)) for name in CLUSTERS}
    clients = {name: Client(there, name=name) for name, there in where.items()}
    for client in clients.values():
        await client.__aenter__()

    try:
        yield clients
    finally:
        for client in clients.values():
            await client.aclose()


def agents_of(fleet: LocalFleet, cluster: str) -> tuple[str, ...]:
    """Return the names of the processes."""
    return agents.AGENTS[: len(fleet.site(cluster).agents)]


async def _restart_agents(fleet: LocalFleet, cluster: str) -> None:
    for do in (fleet.stop, fleet.start):
        for name in agents_of(fleet, cluster):
            await asyncio.to_thread(do, cluster, name)


def point_at(file: Path, url: str) -> None:
    """Make a kubeconfig mean the API server behind that fault proxy."""
    config = yaml.safe_load(file.read_text())
    config["clusters"][0]["cluster"]["server"] = url
    kubeconfigs.write(file, yaml.safe_dump(config, sort_keys=False))


def connect(fleet: LocalFleet, target: str, url: str) -> None:
    """Make `target` a target of the source, by a fault proxy."""
    agents.vnode(
        "connect",
        *("--source", str(fleet.kubeconfig(SOURCE)), "--target", str(fleet.kubeconfig(target))),
        *("--namespace", "default", "--name", target, "--server", url, "--enable-namespace"),
        *("--cluster-name", SOURCE),
    )
