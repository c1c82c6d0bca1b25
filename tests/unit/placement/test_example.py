"""The example of the documentation, from end to end: three targets of weights 40, 40 and 20.

Two of them have room for six pods each. Scheduling, placeholders, moves and deletion costs work
together, as in a leader.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from tests import background
from tests.apiserver.links import following
from tests.unit.placement.moving_world import FrankRoom, MovingWorld, fleet
from tests.unit.pods.policies import entry, spread
from vnode.api import kinds, objects, placeholders
from vnode.api.clock import Clock
from vnode.kube.informer import Informer
from vnode.pods.source.deletion_costs import DeletionCosts
from vnode.pods.source.placeholders import Placeholders

pytestmark = pytest.mark.looptime


class Placed(NamedTuple):
    """Pods of each target, and those that wait for it: pending ones, and placeholders."""

    running: tuple[int, ...]
    waiting: tuple[int, ...] = (0, 0, 0)
    placeholders: tuple[int, ...] = (0, 0, 0)


@asynccontextmanager
async def planned(world: MovingWorld, clock: Clock) -> AsyncIterator[None]:
    """Do all that a leader does for pods with a policy."""
    client = world.server.client()
    proxies, nodes = Informer(client, kinds.PODS), Informer(client, kinds.NODES)
    keeper = Placeholders(client, proxies, nodes, world.links, world.cache, world.policy, clock)
    costs = DeletionCosts(client, proxies, nodes, world.cache, world.policy, clock)
    world.placeholders = keeper.openings
    async with (
        world.moving(),
        following(proxies, nodes),
        background.running(keeper.run(), costs.run()),
    ):
        keeper.openings.subscribe(world.moves.look_at)
        yield


def found(world: MovingWorld) -> Placed:
    """Return where the pods are."""
    living, behind, pending = world.living(), Counter[str](), Counter[str]()
    for pod in world.pods():
        behind.update(placeholders.of(pod))
        if not objects.node_name(pod):
            pending.update(r.node for r in world.rooms if r.find(objects.name(pod)))

    names = [room.link.target.name for room in world.rooms]
    nodes = [room.node for room in world.rooms]
    return Placed(
        tuple(living.get(name, 0) for name in names),
        tuple(pending[node] for node in nodes),
        tuple(behind[node] for node in nodes),
    )


async def test_it_grows_overflows_goes_back_and_shrinks(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with planned(world, clock):
        for replicas, expected in ((10, (4, 4, 2)), (15, (6, 6, 3))):
            world.scale(replicas)
            await asyncio.sleep(30)
            assert found(world) == Placed(expected)

        world.scale(20)
        await asyncio.sleep(110)
        assert found(world) == Placed((6, 6, 4), waiting=(2, 2, 0))
        await asyncio.sleep(20)
        assert found(world) == Placed((6, 6, 8), placeholders=(2, 2, 0))
        await asyncio.sleep(3600)
        assert found(world) == Placed((6, 6, 8), placeholders=(2, 2, 0))

        for room in world.rooms[:2]:
            room.grow(8)

        await asyncio.sleep(295)
        assert found(world) == Placed((6, 6, 8), placeholders=(2, 2, 0))
        await asyncio.sleep(60)
        assert found(world) == Placed((8, 8, 4))
        assert (len(world.evictions), world.most_missing) == (4, 1)

        world.scale(10)
        await asyncio.sleep(30)
        assert found(world) == Placed((4, 4, 2))
        await asyncio.sleep(3600)
        assert found(world) == Placed((4, 4, 2))
        assert len(world.evictions) == 4


async def test_after_overflow_it_shrinks_to_the_plan_and_no_placeholder_is_left(
    clock: Clock,
) -> None:
    world = fleet(clock, 6, 6, 14)
    async with planned(world, clock):
        world.scale(20)
        await asyncio.sleep(180)
        assert found(world) == Placed((6, 6, 8), placeholders=(2, 2, 0))
        world.scale(10)
        await asyncio.sleep(180)
        assert found(world) == Placed((4, 4, 2))
        assert [len(room.server.all(kinds.POD_CHAPERONS)) for room in world.rooms] == [4, 4, 2]
        world.scale(6)
        await asyncio.sleep(60)
        assert found(world) == Placed((2, 2, 2))
        world.scale(15)
        await asyncio.sleep(60)
        assert found(world) == Placed((6, 6, 3))
        assert world.evictions == []


async def test_equal_weights_share_four_pods_two_one_one(clock: Clock) -> None:
    rooms = [FrankRoom(f"c{number}", clock, 20) for number in (1, 2, 3)]
    world = MovingWorld(clock, spread(*(entry(room.node, weight=1) for room in rooms)), *rooms)
    async with planned(world, clock):
        world.scale(4)
        await asyncio.sleep(30)
        first = found(world)
        assert sorted(first.running, reverse=True) == [2, 1, 1]
        await asyncio.sleep(3600)
        assert found(world) == first
