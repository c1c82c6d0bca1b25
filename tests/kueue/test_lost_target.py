"""A target that is lost: Kueue lets what ran there in again, as a whole, in another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests import kit
from tests.kit import Fleet
from tests.kueue import queues
from tests.kueue.gpus import Rooms
from tests.kueue.queues import IN_ONE_TARGET, job, submit
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.api.virtual_constraints import HOSTNAME
from vnode.kube.client import Client

OF_NODE = {names.virtual_node("default", name): name for name in ("c2", "c3")}


@pytest.fixture
async def hostnames(source: Client) -> AsyncIterator[None]:
    """Have virtual nodes be machines for Kueue, which does more about those that fail."""

    async def show(labels: str | None) -> None:
        def is_done(node: Object) -> bool:
            return (HOSTNAME in objects.labels(node)) == bool(labels)

        for node, target in OF_NODE.items():
            body = {"metadata": {"annotations": {keys.SHOWN_LABELS: labels}}}
            await source.patch(kinds.TARGETS, target, body, "default")
            await kit.until_one(source, kinds.NODES, node, "", is_done)

    await show(HOSTNAME)
    yield
    await show(None)


async def until_moved(fleet: Fleet, source: Client) -> None:
    """Cut the target of the Job `whole` off, and wait until its 16 pods run in the other one."""
    (lost,) = queues.nodes_of(await queues.pods_of(source, "whole", 16))
    (other,) = OF_NODE.keys() - {lost}

    def run_there(pods: dict[str, Object]) -> bool:
        there = [pod for pod in pods.values() if objects.node_name(pod) == other]
        return len(there) == 16 and all(kit.phase(pod) == "Running" for pod in there)

    await asyncio.to_thread(fleet.run, "partition", OF_NODE[lost])
    try:
        selector = "job-name=whole"
        await kit.until(source, kinds.PODS, run_there, namespace="default", label_selector=selector)
        # Kueue has ended the pods by suspending the Job, which is no failure of it.
        assert "failed" not in objects.status(await source.get(kinds.JOBS, "whole", "default"))
    finally:
        await asyncio.to_thread(fleet.run, "heal", OF_NODE[lost])

    await kit.until_one(source, kinds.TARGETS, OF_NODE[lost], "default", kit.is_ready)
    # Those that were lost end when their target is back.
    assert queues.nodes_of(await queues.pods_of(source, "whole", 16)) == {other}


async def run_and_lose(fleet: Fleet, source: Client, rooms: Rooms, **fields: Any) -> None:
    """Have a Job run with the flavor `targets`, and see it move when its target is lost."""
    await rooms((8, 8), (8, 8))
    await queues.add_check(source, "room")
    await queues.add_queue(source, "team", {"targets": 100}, "room")
    await submit(source, job("whole", "team", 16, **fields))
    await until_moved(fleet, source)


async def test_the_check_has_what_it_holds_in_a_lost_target_start_in_another(
    fleet: Fleet, source: Client, rooms: Rooms
) -> None:
    await queues.add_flavor(source, "targets", stays=40)
    await run_and_lose(fleet, source, rooms)


async def test_the_check_has_a_pod_set_of_a_lost_target_start_in_another(
    fleet: Fleet, source: Client, rooms: Rooms
) -> None:
    await queues.add_topology(source, "targets", keys.TARGET_NAME)
    await queues.add_flavor(source, "targets", topology="targets", stays=40)
    await run_and_lose(fleet, source, rooms, of_pods=IN_ONE_TARGET)


async def test_the_check_has_what_kueue_placed_by_hostnames_start_in_another(
    fleet: Fleet, source: Client, rooms: Rooms, hostnames: None
) -> None:
    await queues.add_topology(source, "machines", keys.TARGET_NAME, HOSTNAME)
    await queues.add_flavor(source, "targets", topology="machines", stays=40)
    await run_and_lose(fleet, source, rooms, of_pods=IN_ONE_TARGET)
