"""Counts the requests of pods that start at once on a real kubelet, plain and elected.

kwok's nodes say of a pod that it runs, and nothing else. A kubelet reads the pod and writes its
status three times until it runs, and tells four Events, so that its pods cost more in any case, and
more of it may come back to the source. The fleet has one target with one real node, and takes root.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from hack.fleetlib import progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from tests.bench import phases, report, sequence
from tests.bench.figures import PLAIN, VNODE, Phase
from tests.bench.fleet import REAL_NODE, measured_fleet
from tests.bench.phases import MeasuredFleet, Order
from tests.realnode.cluster import SOURCE, TARGET
from vnode.api.errors import VnodeError


def measure(pods: int) -> tuple[list[Phase], str]:
    """Return the phases of so many pods, plain and then elected, and why there are not both."""
    done: list[Phase] = []
    failures: list[str] = []
    try:
        with measured_fleet(None, REAL_NODE) as fleet:
            asyncio.run(_phases(fleet, pods, done))
    except* (FleetError, VnodeError, AssertionError) as group:
        failures = [str(error) for error in sequence.leaves(group)]

    return done, "; ".join(failures)


async def _phases(fleet: LocalFleet, pods: int, done: list[Phase]) -> None:
    async def do(system: str) -> None:
        done.append(await phases.run(stage, Order(system, pods, real=True)))
        progress.say(f"real kubelet, {report.progress(done[-1])}")

    async with AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(sequence.client(fleet, name))
            for name in (SOURCE, TARGET)
        }
        await sequence.elect(clients[SOURCE])
        stage = MeasuredFleet(fleet, clients, await sequence.idle(clients), targets=(TARGET,))
        async with sequence.without_agents(stage):
            await do(PLAIN)

        await do(VNODE)
