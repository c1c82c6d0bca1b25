"""A target that is lost: Kueue lets what ran there in again, as a whole, in another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.kit import Fleet
from tests.kueue import queues
from tests.kueue.gpus import Rooms
from tests.kueue.queues import IN_ONE_TARGET, job, submit
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

HOSTNAME = "kubernetes.io/hostname"
OF_NODE = {names.virtual_node("default", name): name for name in ("c2", "c3")}


def shows(node: Object) -> bool:
    return HOSTNAME in objects.labels(node)


def hides(node: Object) -> bool:
    return not shows(node)


def running_on(node: str, pods: dict[str, Object]) -> int:
    return sum(objects.node_name(p) == node and kit.phase(p) == "Running" for p in pods.values())


@pytest.fixture
async def hostnames(source: Client) -> AsyncIterator[None]:
    """Have virtual nodes be machines for Kueue, which replaces what has failed by hostname only."""

    async def show(labels: str | None) -> None:
        for node, target in OF_NODE.items():
            body = {"metadata": {"annotations": {keys.SHOWN_LABELS: labels}}}
            await source.patch(kinds.TARGETS, target, body, "default")
            await kit.until_one(source, kinds.NODES, node, "", shows if labels else hides)

    await show(HOSTNAME)
    yield
    await show(None)


async def test_what_ran_in_a_lost_target_starts_in_another_as_a_whole(
    fleet: Fleet, source: Client, rooms: Rooms, hostnames: None
) -> None:
    await queues.add_topology(source, "machines", keys.TARGET_NAME, HOSTNAME)
    await queues.add_flavor(source, "targets", topology="machines")
    await rooms((8, 8), (8, 8))
    await queues.add_queue(source, "team", {"targets": 100})
    await submit(source, job("whole", "team", 16, of_pods=IN_ONE_TARGET))
    (lost,) = queues.nodes_of(await queues.pods_of(source, "whole", 16))
    (other,) = OF_NODE.keys() - {lost}
    await asyncio.to_thread(fleet.run, "partition", OF_NODE[lost])
    try:
        await kit.until(
            source,
            kinds.PODS,
            lambda pods: running_on(other, pods) == 16,
            namespace="default",
            label_selector="job-name=whole",
        )
    finally:
        await asyncio.to_thread(fleet.run, "heal", OF_NODE[lost])

    await kit.until_one(source, kinds.TARGETS, OF_NODE[lost], "default", kit.is_ready)
    assert queues.nodes_of(await queues.pods_of(source, "whole", 16)) == {other}
