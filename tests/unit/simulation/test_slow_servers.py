"""A burst into a target whose API server has few seats, beside one that has many; whole agents."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from datetime import datetime
from itertools import pairwise
from typing import Any, TypeVar
from unittest.mock import patch

import pytest

from tests.apiserver.client import MemoryClient
from tests.simulation import loop, owners
from tests.simulation.agents import SimulatedAgent, streams_between
from tests.simulation.clusters import (
    NAMESPACE,
    SimulatedCluster,
    prepare_source,
    prepare_target,
    target_key,
)
from tests.simulation.kube_scheduler import CandidateScheduler
from tests.simulation.kubelet import PodSimulator
from tests.simulation.schedule import SimulatedWorkload, WorkloadOwner
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.kube import urgency
from vnode.kube.leases import NODE_DURATION, NODE_NAMESPACE
from vnode.kube.pace import MOST
from vnode.kube.urgency import Urgency
from vnode.scheduling import registry

T = TypeVar("T")

SEATS = 3
SERVICE = 0.02  # seconds for which a request has a seat
TARGETS = ("c2", "c3")


def simulated(work: Coroutine[Any, Any, T]) -> T:
    """Run work in simulated time, without plugins, which are read from the disk.

    Leases of nodes are renewed in the same thread, which the renewal takes for another.
    """
    random.seed(1)  # vnode's own jitter
    simulated_loop = loop.SimulatedLoop
    with (
        patch.object(registry, "installed", list),
        patch.object(simulated_loop, "call_soon_threadsafe", simulated_loop.call_soon),
    ):
        return loop.run(work)


class BurstWorld:
    """A source and two targets, whose agents are run by `run`."""

    def __init__(self, seed: int = 1) -> None:
        dice = random.Random(seed)
        self.source, self.slow, self.quick = (
            SimulatedCluster(name, random.Random(dice.random()), 0.001) for name in ("c1", *TARGETS)
        )
        prepare_source(self.source, TARGETS)
        targets = {cluster.name: cluster for cluster in (self.slow, self.quick)}
        servers = {name: cluster.server for name, cluster in targets.items()}
        self.streams = streams_between(targets, lambda name: self.agents[name])
        self.agents = {
            cluster.name: SimulatedAgent(
                cluster, servers if cluster is self.source else {}, 1, self.streams
            )
            for cluster in (self.source, self.slow, self.quick)
        }
        for cluster in (self.slow, self.quick):
            prepare_target(cluster, [100] * 4)
            PodSimulator(cluster).follow()
            CandidateScheduler(cluster, self.agents[cluster.name]).follow()

        self.unready: list[str] = []
        self.renewed: dict[str, list[datetime]] = {}
        self.source.server.store.changed.add(self._on_change)

    def limit(self, cluster: SimulatedCluster, seats: float) -> None:
        cluster.server.seats.count, cluster.server.seats.seconds = seats, SERVICE

    def create(self, name: str, target: str) -> None:
        """Create a pod that may go to one target only."""
        workload = SimulatedWorkload("burst", WorkloadOwner.USER, 0.0)
        manifest = owners.pod(workload, name)
        constraints = f"nodeSelector: {{{keys.TARGET_NAME}: {target}}}"
        objects.annotations(manifest)[keys.PROXY_CONSTRAINTS] = constraints
        admitted = owners.admitted(manifest, TARGETS, None)
        self.source.writer.create(kinds.PODS, admitted, NAMESPACE)

    async def start(self) -> None:
        """Start the agents, and return once both virtual nodes are Ready."""
        for agent in self.agents.values():
            agent.start()

        nodes = [target_key(name).node_name for name in TARGETS]
        server = self.source.server
        await server.until(lambda: all(self._is_ready(node) for node in nodes))
        self.unready.clear()

    def _is_ready(self, name: str) -> bool:
        node = self.source.server.find(kinds.NODES, name) or {}
        return (objects.condition(node, "Ready") or {}).get("reason") == "Connected"

    async def until_running(self, target: str, count: int) -> float:
        """Return the seconds until so many pods run there, as the source has it."""
        begun = asyncio.get_running_loop().time()

        def all_run() -> bool:
            pods = self.source.pods()
            node = target_key(target).node_name
            there = [pod for pod in pods if objects.spec(pod).get("nodeName") == node]
            return sum(objects.status(pod).get("phase") == "Running" for pod in there) >= count

        await self.source.server.until(all_run, 900)
        return asyncio.get_running_loop().time() - begun

    async def end(self) -> None:
        for agent in self.agents.values():
            await agent.kill()

    def _on_change(self, kind: Kind, change: object) -> None:
        new = getattr(change, "new", None)
        if new is None:
            return

        if kind is kinds.NODES:
            ready = objects.condition(new, "Ready") or {}
            if ready.get("status") != "True":
                self.unready.append(objects.name(new))
        elif kind is kinds.LEASES and objects.namespace(new) == NODE_NAMESPACE:
            at = objects.parse_timestamp(objects.spec(new)["renewTime"])
            assert at is not None
            self.renewed.setdefault(objects.name(new), []).append(at)

    def longest_without_lease(self) -> float:
        """Return the most seconds that lay between two renewals of one node's Lease."""
        return max(
            (after - before).total_seconds()
            for times in self.renewed.values()
            for before, after in pairwise(times)
        )


def test_300_pods_run_at_the_pace_of_few_seats_and_none_is_lost() -> None:
    async def burst() -> None:
        world = BurstWorld()
        await world.start()
        world.limit(world.slow, SEATS)
        for number in range(300):
            world.create(f"pod-{number}", "c2")

        await world.until_running("c2", 300)
        await world.end()
        seats = world.slow.server.seats
        assert len(world.slow.pods()) == 300
        assert len(world.source.pods()) == 300
        assert seats.refused.total() > 0
        assert seats.refused.total() < 0.05 * seats.given.total(), (seats.refused, seats.given)
        assert world.unready == []

    simulated(burst())


def test_a_slow_target_keeps_no_other_waiting() -> None:
    async def burst(seats: float) -> tuple[float, int]:
        world = BurstWorld()
        await world.start()
        world.limit(world.quick, 1000)
        world.limit(world.slow, seats)
        for number in range(50):
            world.create(f"slow-{number}", "c2")
            world.create(f"quick-{number}", "c3")

        took = await world.until_running("c3", 50)
        assert world.quick.server.seats.refused.total() == 0
        replica = world.agents["c1"].replica
        assert replica is not None
        link = replica._shared.links.get(target_key("c3").node_name)
        assert link is not None
        limit = link.client.pacer.pace.limit
        await world.end()
        return took, limit

    alone, _limit = simulated(burst(1000))
    beside, limit = simulated(burst(1))
    assert limit == MOST
    assert beside < 1.2 * alone + 0.5, (beside, alone)


def test_leases_of_nodes_are_renewed_while_the_source_has_few_seats() -> None:
    async def burst() -> None:
        world = BurstWorld()
        await world.start()
        world.limit(world.source, SEATS)
        for number in range(60):
            world.create(f"pod-{number}", TARGETS[number % 2])

        await world.until_running("c2", 30)
        await world.until_running("c3", 30)
        await asyncio.sleep(2 * NODE_DURATION)
        await world.end()
        assert world.source.server.seats.refused.total() > 0
        assert world.longest_without_lease() < NODE_DURATION / 2
        assert world.unready == []

    simulated(burst())


def test_what_a_scheduler_or_a_node_waits_for_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[Urgency]] = {}
    allowed: set[Urgency] = set()
    send = MemoryClient._exchange

    async def record(
        client: MemoryClient,
        method: str,
        path: str,
        query: Any,
        data: bytes | None,
        *others: Any,
        **options: Any,
    ) -> bytes:
        urgent = urgency.of(method, path)
        seen.setdefault(f"{method} {path.rpartition('/')[2]}", set()).add(urgent)
        if data and method == "PATCH" and keys.IS_ALLOWED.encode() in data:
            allowed.add(urgent)

        return await send(client, method, path, query, data, *others, **options)

    async def burst() -> None:
        world = BurstWorld()
        world.streams.is_down = True  # else nobody writes that it is allowed
        await world.start()
        world.create("pod", "c2")
        await world.until_running("c2", 1)
        await world.end()

    monkeypatch.setattr(MemoryClient, "_exchange", record)
    simulated(burst())
    assert seen["POST binding"] == {Urgency.AWAITED}  # of the proxy, and of its delegate
    assert allowed == {Urgency.AWAITED}
    assert seen["POST podchaperons"] == {Urgency.BACKGROUND, Urgency.VITAL}  # and of probes
    assert seen["POST pods"] == {Urgency.BACKGROUND}
    assert seen["POST leases"] == {Urgency.VITAL}


def test_a_target_that_refuses_all_for_a_while_is_asked_little_and_stays_ready() -> None:
    async def refused() -> None:
        world = BurstWorld()
        await world.start()
        world.limit(world.slow, 0)
        for number in range(50):
            world.create(f"pod-{number}", "c2")

        await asyncio.sleep(50)
        asked = world.slow.server.seats.refused.total()
        assert world.unready == []
        world.limit(world.slow, 100)
        await world.until_running("c2", 50)
        await world.end()
        # Two agents, each with a request at a time after a pause, and what is vital.
        assert asked < 3 * 50 + 100, asked

    simulated(refused())
