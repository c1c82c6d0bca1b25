"""A Target whose profile goes is removed in order, at a rate; it stays if the profile is back."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.targetsets.sets_environment import CRD, TargetSetsEnvironment
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import TooManyRequests, Unreachable
from vnode.targetsets import deciding

pytestmark = pytest.mark.looptime


def with_pods(clock: Clock, *profiles: str, pods: int = 0) -> TargetSetsEnvironment:
    env = TargetSetsEnvironment(clock, *profiles)
    env.add_set()
    for name in profiles:
        env.add_node(name)

    env.add_pods(profiles[0], pods)
    return env


async def test_a_target_is_cordoned_drained_and_deleted(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", "c", "d", pods=20)
    env.add_pods("a", 1, "DaemonSet")
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(4)
        assert env.is_cordoned("a")
        assert not env.is_cordoned("b")
        assert keys.PROFILE_GONE in objects.annotations(env.target("a"))
        assert env.reasons()["fleet/a"] == "Cordoned"
        await asyncio.sleep(290)
        assert env.pods("a") == 21
        await asyncio.sleep(65)
        assert env.pods("a") in (10, 11)
        assert env.reasons()["fleet/a"] == "Draining"
        await asyncio.sleep(70)
        assert env.targets() == ["b", "c", "d"]
        assert env.server.count("create", kinds.PODS, "eviction") == 20
        await asyncio.sleep(5)
        assert objects.status(env.set())["found"] == 3


async def test_a_target_without_pods_goes_after_the_time(clock: Clock) -> None:
    env = with_pods(clock, "a", "b")
    env.change_set(removal={"after": "10s"})
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(8)
        assert env.targets() == ["a", "b"]
        await asyncio.sleep(6)
        assert env.targets() == ["b"]


async def test_a_pod_that_a_budget_protects_is_waited_for(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", pods=2)
    env.change_set(removal={"after": "10s", "maxPerMinute": 600})
    refusal = TooManyRequests(429, "TooManyRequests", "disruption budget")
    fault = env.server.fail(
        refusal,
        verb="create",
        kind=kinds.PODS,
        subresource="eviction",
        when=lambda request: request.name == "a-replicaset-0",
        times=None,
    )
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(60)
        assert env.pods("a") == 1
        assert env.targets() == ["a", "b"]
        assert env.server.count("create", kinds.PODS, "eviction") < 15
        fault.times = 0
        await asyncio.sleep(15)
        assert env.targets() == ["b"]


async def test_a_new_target_connects_before_another_is_drained(clock: Clock) -> None:
    env = with_pods(clock, "east", "other", pods=3)
    env.change_set(removal={"after": "10s", "maxPerMinute": 600})
    async with env.leading():
        env.connects = False
        env.add_profile("west")
        env.remove_profile("east")
        await asyncio.sleep(60)
        assert env.is_cordoned("east")
        assert (env.targets(), env.pods("east")) == (["east", "other", "west"], 3)
        env.connect("west")
        await asyncio.sleep(5)
        assert env.targets() == ["other", "west"]


async def test_a_new_target_that_never_connects_holds_no_drain_up_for_long(clock: Clock) -> None:
    env = with_pods(clock, "east", "other", pods=3)
    env.change_set(removal={"after": "10s", "maxPerMinute": 600})
    async with env.leading():
        env.connects = False
        env.add_profile("west")
        env.remove_profile("east")
        await asyncio.sleep(deciding.CONNECTING - 10)
        assert env.pods("east") == 3
        await asyncio.sleep(20)
        assert env.targets() == ["other", "west"]


async def test_a_profile_that_is_back_in_time_uncordons_and_nothing_else(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", pods=3)
    async with env.leading():
        uid = objects.uid(env.target("a"))
        env.remove_profile("a")
        await asyncio.sleep(200)
        assert env.is_cordoned("a")
        env.add_profile("a")
        await asyncio.sleep(2)
        assert not env.is_cordoned("a")
        assert keys.CORDONED_BY_SET not in objects.annotations(env.node("a"))
        assert keys.PROFILE_GONE not in objects.annotations(env.target("a"))
        await asyncio.sleep(1000)
        assert (objects.uid(env.target("a")), env.pods("a")) == (uid, 3)


async def test_a_profile_that_is_back_at_once_cordons_nothing(clock: Clock) -> None:
    env = with_pods(clock, "a", "b")
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(1)
        env.add_profile("a")
        await asyncio.sleep(100)
        assert env.server.count("patch", kinds.NODES) == 0


async def test_a_node_that_somebody_has_cordoned_stays_so(clock: Clock) -> None:
    env = with_pods(clock, "b")
    env.add_profile("a")
    env.add_node("a", unschedulable=True)
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(100)
        env.add_profile("a")
        await asyncio.sleep(100)
        assert env.is_cordoned("a")
        assert keys.PROFILE_GONE not in objects.annotations(env.target("a"))


async def test_a_profile_that_is_not_selected_any_more_goes_likewise(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", "c")
    env.change_set(profiles={"names": ["a", "b", "c"]}, removal={"after": "0s"})
    async with env.leading():
        env.change_set(profiles={"names": ["a", "b"]})
        await asyncio.sleep(10)
        assert env.targets() == ["a", "b"]


@pytest.mark.parametrize(("policy", "cordoned"), [("Cordon", True), ("Orphan", False)])
async def test_a_set_may_keep_its_targets(policy: str, cordoned: bool, clock: Clock) -> None:
    env = with_pods(clock, "a", "b", pods=2)
    env.change_set(removal={"policy": policy})
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(2000)
        assert env.targets() == ["a", "b"]
        assert (env.pods("a"), env.is_cordoned("a")) == (2, cordoned)
        assert env.reasons()["fleet/a"] == ("Cordoned" if cordoned else "ProfileGone")
        env.change_set(removal={"policy": "Orphan"})
        await asyncio.sleep(5)
        assert not env.is_cordoned("a")


async def test_a_new_leader_goes_on_where_the_last_one_was(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", pods=10)
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(100)
        since = objects.annotations(env.target("a"))[keys.PROFILE_GONE]

    async with env.leading():
        await asyncio.sleep(150)
        assert objects.annotations(env.target("a"))[keys.PROFILE_GONE] == since
        assert env.pods("a") == 10

    for _ in range(5):
        async with env.leading():
            await asyncio.sleep(25)

    async with env.leading():
        assert env.targets() == ["b"]


async def test_most_profiles_at_once_are_not_believed(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", "c", "d")
    async with env.leading():
        env.remove_profile("a", "b", "c")
        await asyncio.sleep(5)
        assert env.state("RemovalHeld") == ("True", "MostProfilesGone")
        assert 'vnode.dev/confirm-removal="1"' in env.message("RemovalHeld")

    async with env.leading():
        await asyncio.sleep(2000)
        assert env.targets() == ["a", "b", "c", "d"]
        assert not any(map(env.is_cordoned, "abcd"))
        for name in "abc":
            env.add_profile(name)

        await asyncio.sleep(3)
        assert env.state("RemovalHeld") == ("False", "NothingHeld")


async def test_profiles_that_go_within_a_minute_go_at_once(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", "c", "d")
    async with env.leading():
        for name in "abc":
            env.remove_profile(name)
            await asyncio.sleep(20)

        await asyncio.sleep(2000)
        assert env.state("RemovalHeld")[0] == "True"
        assert env.targets() == ["a", "b", "c", "d"]
        assert not env.is_cordoned("c")


async def test_profiles_that_go_one_after_the_other_go(clock: Clock) -> None:
    env = with_pods(clock, "a", "b", "c", "d")
    async with env.leading():
        for name in "abc":
            env.remove_profile(name)
            await asyncio.sleep(61)

        await asyncio.sleep(2000)
        assert env.targets() == ["d"]


async def test_what_is_confirmed_is_removed_and_no_more(clock: Clock) -> None:
    env = with_pods(clock, *"abcdefg")
    env.change_set(removal={"after": "10s"})
    async with env.leading():
        env.remove_profile(*"abcd")
        await asyncio.sleep(100)
        env.confirm(7)
        await asyncio.sleep(100)
        assert len(env.targets()) == 7
        env.confirm(1)
        await asyncio.sleep(30)
        assert env.targets() == ["e", "f", "g"]
        assert keys.CONFIRM_REMOVAL not in objects.annotations(env.set())
        env.remove_profile("e", "f")
        await asyncio.sleep(100)
        assert env.state("RemovalHeld")[0] == "True"
        assert env.targets() == ["e", "f", "g"]


async def test_a_kind_that_is_removed_takes_no_targets_along(clock: Clock) -> None:
    env = with_pods(clock, "a", "b")
    async with env.leading():
        env.remove_profile("a", "b")
        env.server.remove(kinds.CRDS, CRD["metadata"]["name"])
        await asyncio.sleep(1000)
        assert env.targets() == ["a", "b"]
        assert env.state() == ("False", "InventoryNotServed")
        assert env.state("RemovalHeld") == ("True", "InventoryNotServed")
        env.server.add(kinds.CRDS, CRD)
        await asyncio.sleep(1000)
        assert env.targets() == ["a", "b"]
        env.add_profile("a")
        env.add_profile("b")
        await asyncio.sleep(5)
        assert env.state("RemovalHeld")[0] == "False"
        assert not env.is_cordoned("a")


async def test_a_kind_that_is_about_to_go_is_noticed_before_its_profiles(clock: Clock) -> None:
    env = with_pods(clock, "a", "b")
    async with env.leading():
        env.server.freeze()  # what follows reaches the agent in any order
        env.server.change(
            *(kinds.CRDS, CRD["metadata"]["name"], ""),
            lambda crd: crd["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
        )
        env.remove_profile("a")
        env.server.thaw()
        await asyncio.sleep(100)
        assert not env.is_cordoned("a")


async def test_an_empty_inventory_removes_nothing(clock: Clock) -> None:
    env = with_pods(clock, "a")
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(1000)
        assert env.state("RemovalHeld") == ("True", "InventoryEmpty")
        assert env.targets() == ["a"]
        env.confirm()
        await asyncio.sleep(400)
        assert env.targets() == []


async def test_an_inventory_that_does_not_answer_removes_nothing(clock: Clock) -> None:
    env = with_pods(clock, "a", "b")
    async with env.leading():
        env.server.fail(Unreachable("gone"), kind=kinds.CLUSTER_PROFILES, times=None)
        env.server.end_watches(kinds.CLUSTER_PROFILES)
        env.remove_profile("a")
        await asyncio.sleep(1000)
        assert env.targets() == ["a", "b"]
        assert not env.is_cordoned("a")


async def test_a_profile_that_only_the_store_misses_is_not_gone(clock: Clock) -> None:
    env = with_pods(clock, "a", "b")
    async with env.leading():
        watch = env.server.watches(kinds.CLUSTER_PROFILES)
        assert len(watch) == 1
        gone = env.server.find(kinds.CLUSTER_PROFILES, "a", "fleet") or {}
        env.remove_profile("a")
        await asyncio.sleep(1)
        env.server.freeze()
        env.server.add(kinds.CLUSTER_PROFILES, gone)
        env.server.thaw()
        await asyncio.sleep(100)
        assert not env.is_cordoned("a")


async def test_targets_of_a_set_that_has_become_anothers_are_left_alone(clock: Clock) -> None:
    env = with_pods(clock, "a", "b")
    async with env.leading():
        env.server.change(
            *(kinds.CLUSTER_TARGETS, "a", ""), lambda obj: obj["metadata"].pop("labels")
        )
        env.remove_profile("a")
        await asyncio.sleep(1000)
        assert env.targets() == ["a", "b"]


async def test_an_agent_that_starts_without_the_kind_keeps_what_an_earlier_one_has_made(
    clock: Clock,
) -> None:
    env = with_pods(clock, *"abc")
    env.change_set(removal={"after": "1000s"})
    async with env.leading():
        env.remove_profile("a")
        await asyncio.sleep(10)
        assert env.is_cordoned("a")

    env.server.remove(kinds.CRDS, CRD["metadata"]["name"])
    env.remove_profile("b", "c")
    async with env.leading():
        await asyncio.sleep(3000)
        assert env.targets() == ["a", "b", "c"]
        assert env.state("RemovalHeld") == ("True", "InventoryNotServed")
        assert env.reasons()["fleet/a"] == "Cordoned"
        assert not env.is_cordoned("b")
