"""The guard counts what a set has removed already, in whichever term of a leader."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.targetsets.sets_environment import TargetSetsEnvironment
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.errors import TooManyRequests

pytestmark = pytest.mark.looptime
PROFILES = tuple("abcdefghij")


def quickly_removing(clock: Clock) -> TargetSetsEnvironment:
    env = TargetSetsEnvironment(clock, *PROFILES)
    env.add_set()
    env.change_set(removal={"after": "5s", "maxPerMinute": 60})
    for name in PROFILES:
        env.add_node(name)

    return env


async def test_profiles_that_go_one_by_one_within_a_minute_are_most_of_all_that_were_there(
    clock: Clock,
) -> None:
    env = quickly_removing(clock)
    async with env.leading():
        for name in PROFILES[:8]:
            env.remove_profile(name)
            await asyncio.sleep(5.5)

        await asyncio.sleep(120)
        assert len(env.targets()) >= 5
        assert env.state("RemovalHeld") == ("True", "MostProfilesGone")
        assert "Targets are removed already" in env.message("RemovalHeld")
        env.confirm()
        await asyncio.sleep(30)
        assert env.targets() == ["i", "j"]


async def test_another_leader_counts_what_the_last_one_removed(clock: Clock) -> None:
    env = quickly_removing(clock)
    for name in PROFILES[:8]:
        async with env.leading():
            env.remove_profile(name)
            await asyncio.sleep(4)

    async with env.leading():
        await asyncio.sleep(60)
        assert len(env.targets()) >= 5
        assert env.state("RemovalHeld")[0] == "True"


async def test_what_was_removed_more_than_a_minute_ago_does_not_count(clock: Clock) -> None:
    env = quickly_removing(clock)
    async with env.leading():
        for name in PROFILES[:8]:
            env.remove_profile(name)
            await asyncio.sleep(40)

        assert env.targets() == ["i", "j"]


async def test_pods_that_others_bound_are_evicted_before_a_target_goes(clock: Clock) -> None:
    """They are not proxies of ours, so that no store of this environment has them."""
    env = quickly_removing(clock)
    env.add_pods("a", 3, scheduler="default-scheduler")
    env.add_pods("a", 1, "DaemonSet", scheduler="default-scheduler")
    refusal = TooManyRequests(429, "TooManyRequests", "disruption budget")
    budget = env.server.fail(
        refusal, verb="create", kind=kinds.PODS, subresource="eviction", times=None
    )
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(60)
        assert env.pods("a") == 4
        assert "a" in env.targets()
        budget.times = 0
        await asyncio.sleep(30)
        assert env.server.count("create", kinds.PODS, "eviction") >= 3
        assert "a" not in env.targets()
