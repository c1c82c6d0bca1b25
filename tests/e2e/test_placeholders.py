"""Placeholders on a real fleet: they wait where pods were planned, tell of room, and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests import kit
from tests.e2e.places import (
    C2,
    Policy,
    Rooms,
    deploy,
    offer_places,
    place_pod,
    policy,
    rooms,
    until_there,
    until_told,
)
from tests.kit import Fleet
from vnode.api import keys, kinds, objects, placeholders, scheduled_condition
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["policy", "rooms"]

Grow = Callable[[int], Awaitable[None]]


@pytest.fixture
async def grow(c2: Client) -> AsyncIterator[Grow]:
    """Yield a function that has another node of c2 offer places, as an autoscaler's node does."""

    async def offer(count: int | None) -> None:
        node = max(objects.name(node) for node in await c2.list(kinds.NODES))
        await offer_places(c2, node, count)

    yield offer
    await offer(None)


def condition(obj: Object) -> Object:
    return objects.condition(obj, "PodScheduled") or {}


def waiting(chaperons: dict[str, Object]) -> list[Object]:
    return [c for c in chaperons.values() if keys.PLACEHOLDER in objects.annotations(c)]


async def until_placeholders(
    c2: Client, count: int, fits: Callable[[Object], bool]
) -> dict[str, Object]:
    """Wait until there are so many placeholders in c2, all of which fit."""
    return await kit.until(
        c2,
        kinds.POD_CHAPERONS,
        lambda all_: len(waiting(all_)) == count and all(map(fits, waiting(all_))),
        namespace="default",
    )


async def test_placeholders_wait_for_room_and_never_run(
    source: Client, c2: Client, c3: Client, policy: Policy, rooms: Rooms, grow: Grow
) -> None:
    await rooms(2, 4)
    await policy(
        {"cluster": "c2", "weight": 2},
        {"cluster": "c3", "weight": 1},
        overflow={"afterUnschedulableFor": "8s"},
    )
    await deploy(source, 6)
    pods = await until_there(source, c2=2, c3=4)
    assert sorted(map(placeholders.of, pods.values())) == [(), (), (), (), (C2,), (C2,)]
    await kit.until_one(
        source,
        kinds.PLACEMENT_POLICIES,
        "web",
        "default",
        lambda obj: (
            [
                target.get("placeholders")
                for workload in objects.status(obj).get("workloads") or ()
                for target in workload["targets"]
            ]
            == [2, None]
        ),
    )
    chaperons = await until_placeholders(
        c2, 2, lambda chaperon: scheduled_condition.rejection(objects.status(chaperon)) is not None
    )
    names = {objects.name(chaperon) for chaperon in waiting(chaperons)}

    await grow(1)
    await until_placeholders(
        c2, 2, lambda chaperon: keys.COULD_START in condition(chaperon).get("message", "")
    )
    await source.create(kinds.PODS, place_pod("guest"), "default")
    guest = await kit.until_running(source, "guest")
    assert objects.node_name(guest) == C2, "placeholders hold no room"
    await until_placeholders(
        c2, 2, lambda chaperon: scheduled_condition.rejection(objects.status(chaperon)) is not None
    )
    delegates = [await c2.get(kinds.PODS, name, "default") for name in names]
    assert [(kit.phase(pod), objects.node_name(pod)) for pod in delegates] == [("Pending", "")] * 2

    behind = next(pod for pod in pods.values() if placeholders.of(pod))
    await source.delete(kinds.PODS, objects.name(behind), "default")
    await kit.until_gone(
        c2,
        kinds.POD_CHAPERONS,
        "default",
        label_selector=f"{keys.PARENT_UID}={objects.uid(behind)}",
    )
    await source.delete(kinds.DEPLOYMENTS, "web", "default")
    await source.delete(kinds.PODS, "guest", "default")
    for target in (c2, c3):
        await kit.until_gone(target, kinds.POD_CHAPERONS, "default")
        selector = keys.PARENT_UID
        await kit.until_gone(target, kinds.PODS, "default", label_selector=selector)


async def test_no_more_go_back_at_once_than_there_is_room_for(
    source: Client, c2: Client, policy: Policy, rooms: Rooms, grow: Grow
) -> None:
    """All placeholders say that there is room, as they hold none."""
    await rooms(2, 8)
    await policy(
        {"cluster": "c2"},
        {"cluster": "c3"},
        mode="Fill",
        overflow={"afterUnschedulableFor": "5s"},
        failback={"maxConcurrent": 5},
    )
    await deploy(source, 7)
    await until_there(source, c2=2, c3=5)
    await until_placeholders(c2, 5, lambda _chaperon: True)
    await grow(2)
    await until_there(source, c2=4, c3=3)
    told = [e for e in await source.list(kinds.EVENTS, "default") if e["reason"] == "Moved"]
    assert len([e for e in told if "5 of 7" in e["message"] or "4 of 7" in e["message"]]) == 4
    assert not [event for event in told if "3 of 7" in event["message"]]


class NodePool:
    """A pool of nodes of c2, which an autoscaler grows for pods that find no room there."""

    def __init__(self, fleet: Fleet, c2: Client) -> None:
        self._fleet = fleet
        self._c2 = c2
        self.nodes: list[str] = []

    async def scale_up(self, size: int) -> None:
        """Add one node with so many places as soon as as many pods wait for them."""
        await kit.until(
            self._c2,
            kinds.PODS,
            lambda pods: sum(map(_is_unschedulable, pods.values())) >= size,
            namespace="default",
        )
        name = (await asyncio.to_thread(self._fleet.run, "add-node", "c2")).strip()
        self.nodes.append(name)
        labels = {"metadata": {"labels": {"example.com/pool": "burst"}}}
        await self._c2.patch(kinds.NODES, name, labels)
        await offer_places(self._c2, name, size)

    async def remove(self) -> None:
        for name in self.nodes:
            await self._c2.delete(kinds.NODES, name)


def _is_unschedulable(pod: Object) -> bool:
    return condition(pod).get("reason") == "Unschedulable" and not objects.is_terminating(pod)


@pytest.fixture
async def pool(fleet: Fleet, source: Client, c2: Client) -> AsyncIterator[NodePool]:
    """Yield a pool without nodes; when the test ends, delete its pods, and then its nodes."""
    found = NodePool(fleet, c2)
    yield found
    for deployment in await source.list(kinds.DEPLOYMENTS, "default"):
        await source.delete(kinds.DEPLOYMENTS, objects.name(deployment), "default")

    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default")
    await found.remove()


async def test_pods_go_back_when_their_placeholders_have_made_a_pool_grow(
    source: Client, c2: Client, policy: Policy, rooms: Rooms, pool: NodePool
) -> None:
    await rooms(2, 8)
    await policy(
        {"cluster": "c2", "weight": 2},
        {"cluster": "c3", "weight": 1},
        overflow={"afterUnschedulableFor": "6s"},
        failback={"mode": "Placeholder", "stabilization": "6s", "maxConcurrent": 2},
    )
    await deploy(source, 6)
    pods = await until_there(source, c2=2, c3=4)
    overflowed = {objects.name(pod) for pod in pods.values() if placeholders.of(pod)}
    assert len(overflowed) == 2

    await pool.scale_up(2)
    await until_there(source, c2=4, c3=2)
    await kit.until(  # they end once the pods that replace them are ready
        source,
        kinds.PODS,
        lambda pods: overflowed.isdisjoint(map(objects.name, pods.values())),
        namespace="default",
    )
    await until_told(source, "Moved", "(failback): 4 of 6 run in c3, planned 2; c2 has room")
    await until_placeholders(c2, 0, lambda _chaperon: True)
    there = await c2.list(kinds.PODS, "default")
    assert sum(objects.node_name(pod) in pool.nodes for pod in there) == 2
