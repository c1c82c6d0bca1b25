"""The order of the phases, and the state that the fleet is in for each of them.

The yardstick is measured with all agents and candidate schedulers ended, so that it is what a
cluster without vnode does; once before vnode and once after, to show how much the machine moves.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from hack.fleetlib import agents, progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from tests import kit
from tests.bench import accounts, phases, profiling, report
from tests.bench.figures import PLAIN, VNODE, BenchmarkRun, Phase
from tests.bench.phases import SOURCE, TARGETS, MeasuredFleet, Order
from tests.bench.tracking import NAMESPACE
from vnode import __version__
from vnode.api import kinds, names, objects
from vnode.api.errors import VnodeError
from vnode.kube import endpoint
from vnode.kube.client import Client

CLUSTERS: Final = (SOURCE, *TARGETS)
_IDLE: Final = 10.0  # seconds over which the background is counted
_SINGLES: Final = 30  # pods that are created one at a time


@dataclass(frozen=True)
class BenchmarkPlan:
    """What to measure."""

    bursts: tuple[int, ...]
    plain: bool
    profile: Path | None

    @property
    def yardstick(self) -> int:
        """The size of the burst that is measured twice."""
        return 300 if 300 in self.bursts else self.bursts[0]


async def measure(fleet: LocalFleet, plan: BenchmarkPlan) -> BenchmarkRun:
    """Return all phases of a plan, one after the other, up to the first that fails."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(client(fleet, name)) for name in CLUSTERS}
        await elect(clients[SOURCE])
        version = await clients[SOURCE].request("GET", "/version")
        nodes = await clients[TARGETS[0]].list(kinds.NODES, label_selector="type=kwok")
        stage = MeasuredFleet(fleet, clients, await idle(clients))
        done: list[Phase] = []
        failures: list[str] = []
        try:
            await _phases(stage, plan, done)
        except* (FleetError, VnodeError, AssertionError) as group:
            failures = [str(error) for error in leaves(group)]

    return BenchmarkRun(
        started,
        os.cpu_count() or 1,
        platform.python_version(),
        __version__,
        version["gitVersion"],
        len(nodes),
        stage.idle,
        done,
        "; ".join(failures),
    )


def leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    """Yield the exceptions of a group and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def client(fleet: LocalFleet, name: str) -> Client:
    return Client(endpoint.from_kubeconfig_file(fleet.kubeconfig(name)), name=name)


async def elect(client: Client) -> None:
    """Have the webhook look at the namespace of the pods."""
    labels = {"metadata": {"labels": {"multicluster-scheduler": "enabled"}}}
    await client.patch(kinds.NAMESPACES, NAMESPACE, labels)


async def idle(clients: Mapping[str, Client]) -> dict[str, dict[str, float]]:
    """Return the requests a second that each cluster answers while nothing happens."""
    before = await accounts.requests(clients)
    await asyncio.sleep(_IDLE)
    return accounts.rates(before, await accounts.requests(clients), _IDLE)


async def _phases(stage: MeasuredFleet, plan: BenchmarkPlan, done: list[Phase]) -> None:
    async def do(order: Order) -> None:
        done.append(await phases.run(stage, order))
        progress.say(report.progress(done[-1]))

    if plan.plain:
        async with without_agents(stage):
            await do(Order(PLAIN, _SINGLES, burst=False))
            for size in plan.bursts:
                await do(Order(PLAIN, size))

    await do(Order(VNODE, _SINGLES, burst=False))
    for size in plan.bursts[:-1]:
        await do(Order(VNODE, size))

    with profiling.recorded(stage.fleet, plan.profile):
        await do(Order(VNODE, plan.bursts[-1]))

    if plan.plain:
        async with without_agents(stage):
            await do(Order(PLAIN, plan.yardstick))


@asynccontextmanager
async def without_agents(stage: MeasuredFleet) -> AsyncIterator[None]:
    """End all that vnode adds to a cluster for the block; it is back and well after it."""
    await asyncio.to_thread(_stop, stage)
    yield
    await asyncio.to_thread(_start, stage)
    wanted = {names.virtual_node(NAMESPACE, target) for target in stage.targets}
    await kit.until(
        stage.clients[SOURCE],
        kinds.NODES,
        lambda nodes: sum(_takes_pods(nodes.get(name)) for name in wanted) == len(wanted),
        seconds=60,
    )


def _stop(stage: MeasuredFleet) -> None:
    for name in stage.clients:
        stage.fleet.stop(name, agents.CANDIDATE_SCHEDULER)
        stage.fleet.stop(name, agents.AGENT)


def _start(stage: MeasuredFleet) -> None:
    for name in stage.clients:
        stage.fleet.start(name, agents.AGENT)
        stage.fleet.start(name, agents.CANDIDATE_SCHEDULER)


def _takes_pods(node: objects.Object | None) -> bool:
    """Tell whether a node is Ready, without the taints of a node whose agent was away."""
    if node is None:
        return False

    ready = (objects.condition(node, "Ready") or {}).get("status") == "True"
    taints = {taint["key"] for taint in objects.spec(node).get("taints") or ()}
    return ready and not any(key.startswith("node.kubernetes.io/") for key in taints)
