"""Pods that run are moved to where their policy wants them, and only where that brings them closer."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.placement.moving_world import MovingWorld, fleet
from vnode.api import keys, objects
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime


async def overflowed(world: MovingWorld) -> None:
    """Have twenty pods of which four run in the third cluster, for lack of room."""
    world.scale(20)
    await asyncio.sleep(60)
    assert world.living() == {"c1": 6, "c2": 6, "c3": 4, "": 4}
    await asyncio.sleep(90)
    assert world.living() == {"c1": 6, "c2": 6, "c3": 8}


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

        c1, c2, _ = world.targets
        c1.grow(8)
        c2.grow(8)
        await asyncio.sleep(298)
        assert world.evictions == []
        await asyncio.sleep(60)
        assert world.living() == {"c1": 8, "c2": 8, "c3": 4}
        assert (len(world.evictions), world.most_missing) == (4, 1)
        assert set(world.evictions) == {objects.name(pod) for pod in marked}
        await asyncio.sleep(3600)
        assert len(world.evictions) == 4
