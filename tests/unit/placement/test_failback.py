"""Pods that overflowed go back when there is room, and not before, by what `failback` says."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background
from tests.apiserver.links import following
from tests.unit.placement.moving_acts import make_room, overflowed
from tests.unit.placement.moving_world import FrankRoom, MovingWorld, fleet
from tests.unit.pods.policies import add_replicas, entry, spread
from vnode.api import keys, kinds, objects, placeholders
from vnode.api.clock import Clock
from vnode.kube.informer import Informer
from vnode.pods.source.placeholders import Placeholders
from vnode.scheduling.placement.moves import (
    Failback,
    FailbackMode,
    IntOrPercent,
)
from vnode.telemetry import metrics

pytestmark = pytest.mark.looptime


def counted(name: str, **labels: str) -> float:
    """Return how far a counter is."""
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def placeholders_kept(world: MovingWorld, clock: Clock) -> AsyncIterator[None]:
    """Move pods to where their placeholders could start."""
    client = world.server.client()
    proxies, nodes = Informer(client, kinds.PODS), Informer(client, kinds.NODES)
    keeper = Placeholders(client, proxies, nodes, world.links, world.cache, world.policy, clock)
    world.keeper, world.placeholders = keeper, keeper.openings
    async with world.moving(), following(proxies, nodes), background.running(keeper.run()):
        keeper.openings.subscribe(world.moves.look_at)
        yield


async def test_pods_that_overflowed_go_back_when_there_has_been_room_for_long_enough(
    clock: Clock,
) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        marked = [p for p in world.pods() if keys.OVERFLOWED_FROM in objects.annotations(p)]
        assert len(marked) == 4
        await asyncio.sleep(3600)
        assert world.evictions == []

        make_room(world)
        await asyncio.sleep(298)
        assert world.evictions == []
        await asyncio.sleep(60)
        assert world.living() == {"c1": 8, "c2": 8, "c3": 4}
        assert (len(world.evictions), world.most_missing) == (4, 1)
        assert set(world.evictions) == {objects.name(pod) for pod in marked}
        assert set(world.replacements.why) == set(world.evictions)
        await asyncio.sleep(3600)
        assert len(world.evictions) == 4


async def test_after_going_back_the_workload_shrinks_by_its_plan(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        make_room(world)
        await asyncio.sleep(400)
        world.scale_in(10, {"c1": 4, "c2": 4, "c3": 2})
        await asyncio.sleep(3600)
        assert world.living() == {"c1": 4, "c2": 4, "c3": 2}
        assert len(world.evictions) == 4


async def test_room_that_comes_and_goes_is_no_room(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with world.moving():
        await overflowed(world)
        for _ in range(5):
            world.rooms[0].grow(8)
            await asyncio.sleep(200)
            world.rooms[0].grow(6)
            await asyncio.sleep(50)

        assert world.evictions == []


async def test_never_means_never(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14, failback=Failback(FailbackMode.NEVER))
    async with world.moving():
        await overflowed(world)
        world.rooms[0].grow(20)
        await asyncio.sleep(3600)
        assert world.evictions == []
        assert not world.server.received("get", kinds.PODS)


async def test_a_part_of_the_workload_moves_at_once(clock: Clock) -> None:
    failback = Failback(FailbackMode.PROBE, 60, IntOrPercent(15, is_percentage=True))
    world = fleet(clock, 6, 6, 14, failback=failback)
    async with world.moving():
        await overflowed(world)
        make_room(world)
        await asyncio.sleep(120)
        assert world.living() == {"c1": 8, "c2": 8, "c3": 4}
        assert world.most_missing <= 3


async def test_a_placeholder_says_since_when_there_is_room(clock: Clock) -> None:
    class KnownPlaceholders:
        def __init__(self) -> None:
            self.moments: dict[str, float] = {}

        def since(self, workload: str, node: str) -> float | None:
            assert workload == "deployment/default/web"
            return self.moments.get(node)

    world, known = fleet(clock, 6, 6, 14), KnownPlaceholders()
    world.placeholders = known
    async with world.moving():
        await overflowed(world)
        make_room(world)
        await asyncio.sleep(1000)
        assert world.evictions == []
        known.moments[world.rooms[1].node] = clock.monotonic() - 299
        world.moves.look_at("deployment/default/web")
        await asyncio.sleep(30)
        assert world.living() == {"c1": 6, "c2": 8, "c3": 6}


async def test_pods_go_back_to_where_their_placeholders_could_start(clock: Clock) -> None:
    world = fleet(clock, 6, 6, 14)
    async with placeholders_kept(world, clock):
        await overflowed(world)
        c1, c2, _ = world.rooms

        def waiting() -> Counter[str]:
            return Counter(node for pod in world.pods() for node in placeholders.of(pod))

        assert waiting() == {c1.node: 2, c2.node: 2}
        assert world.keeper is not None
        world.keeper.measure()
        shown = [counted("vnode_placeholders", target=str(r.link.target)) for r in world.rooms]
        assert shown == [2, 2, 0]
        c1.grow(7)
        await asyncio.sleep(298)
        assert world.evictions == []
        await asyncio.sleep(60)
        assert world.living() == {"c1": 7, "c2": 6, "c3": 7}
        assert waiting() == {c1.node: 1, c2.node: 2}
        await asyncio.sleep(3600)
        assert (len(world.evictions), world.most_missing) == (1, 1)
        c2.grow(8)
        await asyncio.sleep(400)
        assert world.living() == {"c1": 7, "c2": 8, "c3": 5}
        assert waiting() == {c1.node: 1}
        left = [len(room.server.all(kinds.POD_CHAPERONS)) for room in world.rooms]
        assert left == [8, 8, 5]


class _TwoWorkloads(MovingWorld):
    """Has two Deployments of two pods each."""

    def _replace(self) -> None:
        for owner in ("web-1", "api-1"):
            there = sum(objects.controller_uid(pod) == owner for pod in self.pods())
            self._made += 2 - there
            add_replicas(self, 2 - there, self._made, owner)


async def test_a_place_that_becomes_free_is_given_to_one_workload_only(clock: Clock) -> None:
    c1, c2 = FrankRoom("c1", clock, 0), FrankRoom("c2", clock, 20)
    world = _TwoWorkloads(clock, spread(entry(c1.node, weight=1), entry(c2.node, weight=1)), c1, c2)
    async with placeholders_kept(world, clock):
        world.scale(4)
        await asyncio.sleep(200)
        assert world.living() == {"c2": 4}
        c1.grow(1)
        await asyncio.sleep(400)
        assert (world.living(), len(world.evictions)) == ({"c1": 1, "c2": 3}, 1)
        await asyncio.sleep(3600)
        assert len(world.evictions) == 1
        c1.grow(2)
        await asyncio.sleep(400)
        assert (world.living(), len(world.evictions)) == ({"c1": 2, "c2": 2}, 2)


async def test_pods_that_left_no_placeholder_go_back_as_in_mode_probe(clock: Clock) -> None:
    class Silent:
        def since(self, _workload: str, _node: str) -> float | None:
            return None

    world = fleet(clock, 6, 6, 14, keep_unschedulable=False)
    world.placeholders = Silent()
    async with world.moving():
        await overflowed(world)
        make_room(world)
        await asyncio.sleep(1000)
        assert world.living() == {"c1": 8, "c2": 8, "c3": 4}
