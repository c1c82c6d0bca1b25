"""A new leader goes on with a workload that is kept together and was being moved."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.placement.test_moves_together import begun, change, drain, together
from vnode.api.clock import Clock
from vnode.scheduling.placement.policy import Mode

pytestmark = pytest.mark.looptime


async def test_a_new_leader_goes_on_with_a_drain(clock: Clock) -> None:
    world = together(clock, 20, 20, 20)
    async with world.running():
        async with world.leading():
            await begun(world, 6)
            drain(world, 0)
            await asyncio.sleep(6)

        goal = next(name for name in world.living() if name not in ("", "c1"))
        world.cache.workloads.forget()
        async with world.leading():
            await asyncio.sleep(60)
            assert world.living() == {goal: 6}


async def test_a_new_leader_goes_on_with_what_is_under_way_though_its_drain_is_over(
    clock: Clock,
) -> None:
    world = together(clock, 20, 20)
    async with world.running():
        async with world.leading():
            await begun(world, 6)
            drain(world, 0)
            await asyncio.sleep(6)

        assert world.living().keys() >= {"c1", "c2"}
        change(world, drains=())
        world.cache.workloads.forget()
        world.scale(7)  # a pod comes while nobody moves
        await asyncio.sleep(5)
        async with world.leading():
            await asyncio.sleep(60)
            assert world.living() == {"c2": 7}
            evictions = len(world.evictions)
            await asyncio.sleep(3600)
            assert (world.living(), len(world.evictions)) == ({"c2": 7}, evictions)


async def test_a_new_leader_leaves_alone_what_a_policy_has_parted_since(clock: Clock) -> None:
    world = together(clock, 20, 20)
    async with world.running():
        async with world.leading():
            await begun(world, 3)
            drain(world, 0)
            await asyncio.sleep(60)
            assert world.living() == {"c2": 3}
            change(world, drains=(), mode=Mode.ANY)
            world.rooms[1].grow(0)
            world.scale(5)
            await asyncio.sleep(5)
            assert world.living() == {"c1": 2, "c2": 3}
            change(world, mode=Mode.SINGLE)

        world.cache.workloads.forget()
        world.rooms[1].grow(20)
        async with world.leading():
            await asyncio.sleep(60)
            assert world.living() == {"c1": 2, "c2": 3}
