"""A new leader goes on with a workload that is kept together and was being moved."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.placement.test_moves_together import begun, change, drain, together
from vnode.api.clock import Clock
from vnode.planning.policy import Mode

pytestmark = pytest.mark.looptime


async def test_a_new_leader_goes_on_with_a_drain(clock: Clock) -> None:
    env = together(clock, 20, 20, 20)
    async with env.running():
        async with env.leading():
            await begun(env, 6)
            drain(env, 0)
            await asyncio.sleep(6)

        goal = next(name for name in env.living() if name not in ("", "c1"))
        env.cache.workloads.forget()
        async with env.leading():
            await asyncio.sleep(60)
            assert env.living() == {goal: 6}


@pytest.mark.no_cover
async def test_a_new_leader_goes_on_with_what_is_under_way_though_its_drain_is_over(
    clock: Clock,
) -> None:
    env = together(clock, 20, 20)
    async with env.running():
        async with env.leading():
            await begun(env, 6)
            drain(env, 0)
            await asyncio.sleep(6)

        assert env.living().keys() >= {"c1", "c2"}
        change(env, drains=())
        env.cache.workloads.forget()
        env.scale(7)  # a pod comes while nobody moves
        await asyncio.sleep(5)
        async with env.leading():
            await asyncio.sleep(60)
            assert env.living() == {"c2": 7}
            evictions = len(env.evictions)
            await asyncio.sleep(3600)
            assert (env.living(), len(env.evictions)) == ({"c2": 7}, evictions)


async def test_a_new_leader_leaves_alone_what_a_policy_has_parted_since(clock: Clock) -> None:
    env = together(clock, 20, 20)
    async with env.running():
        async with env.leading():
            await begun(env, 3)
            drain(env, 0)
            await asyncio.sleep(60)
            assert env.living() == {"c2": 3}
            change(env, drains=(), mode=Mode.ANY)
            env.rooms[1].grow(0)
            env.scale(5)
            await asyncio.sleep(5)
            assert env.living() == {"c1": 2, "c2": 3}
            change(env, mode=Mode.SINGLE)

        env.cache.workloads.forget()
        env.rooms[1].grow(20)
        async with env.leading():
            await asyncio.sleep(60)
            assert env.living() == {"c1": 2, "c2": 3}
