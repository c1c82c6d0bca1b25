"""Placeholders on a real fleet: they wait where pods were planned, tell of room, and go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests import kit
from tests.e2e.test_placement import C2, PLACE, Policy, Rooms, deploy, policy, rooms, until_there
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.pods import delegate

__all__ = ["policy", "rooms"]

Grow = Callable[[int], Awaitable[None]]


@pytest.fixture
async def grow(c2: Client) -> AsyncIterator[Grow]:
    """Has another node of c2 offer so many places, as an autoscaler's does."""

    async def offer(count: int | None) -> None:
        node = max(objects.name(node) for node in await c2.list(kinds.NODES))
        said = None if count is None else str(count)
        status = {"capacity": {PLACE: said}, "allocatable": {PLACE: said}}
        await c2.patch(kinds.NODES, node, {"status": status}, subresource="status")

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
        seconds=60,
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
        c2, 2, lambda chaperon: delegate.rejection(objects.status(chaperon)) is not None
    )
    names = {objects.name(chaperon) for chaperon in waiting(chaperons)}

    await grow(1)
    await until_placeholders(
        c2, 2, lambda chaperon: keys.COULD_START in condition(chaperon).get("message", "")
    )
    guest = kit.pod("guest")
    resources = objects.spec(guest)["containers"][0]["resources"]
    resources["requests"][PLACE] = "1"
    resources["limits"] = {PLACE: "1"}
    await source.create(kinds.PODS, guest, "default")
    guest = await kit.until_one(
        source, kinds.PODS, "guest", "default", lambda pod: kit.phase(pod) == "Running", 60
    )
    assert objects.node_name(guest) == C2, "placeholders hold no room"
    await until_placeholders(
        c2, 2, lambda chaperon: delegate.rejection(objects.status(chaperon)) is not None
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
        await kit.until_gone(target, kinds.POD_CHAPERONS, "default", seconds=60)
        selector = keys.PARENT_UID
        await kit.until_gone(target, kinds.PODS, "default", label_selector=selector, seconds=60)
