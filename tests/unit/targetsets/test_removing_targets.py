"""A Target whose profile goes is removed in order, at a rate; it stays if the profile is back."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.targetsets.sets_world import CRD, SetsWorld
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import TooManyRequests, Unreachable
from vnode.targetsets import deciding

pytestmark = pytest.mark.looptime


def with_pods(clock: Clock, *profiles: str, pods: int = 0) -> SetsWorld:
    world = SetsWorld(clock, *profiles)
    world.add_set()
    for name in profiles:
        world.add_node(name)

    world.add_pods(profiles[0], pods)
    return world


async def test_a_target_is_cordoned_drained_and_deleted(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", "c", "d", pods=20)
    world.add_pods("a", 1, "DaemonSet")
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(4)
        assert world.is_cordoned("a")
        assert not world.is_cordoned("b")
        assert keys.PROFILE_GONE in objects.annotations(world.target("a"))
        assert world.reasons()["fleet/a"] == "Cordoned"
        await asyncio.sleep(290)
        assert world.pods("a") == 21
        await asyncio.sleep(65)
        assert world.pods("a") in (10, 11)
        assert world.reasons()["fleet/a"] == "Draining"
        await asyncio.sleep(70)
        assert world.targets() == ["b", "c", "d"]
        assert world.server.count("create", kinds.PODS, "eviction") == 20
        await asyncio.sleep(5)
        assert objects.status(world.set())["found"] == 3


async def test_a_target_without_pods_goes_after_the_time(clock: Clock) -> None:
    world = with_pods(clock, "a", "b")
    world.change_set(removal={"after": "10s"})
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(8)
        assert world.targets() == ["a", "b"]
        await asyncio.sleep(6)
        assert world.targets() == ["b"]


async def test_a_pod_that_a_budget_protects_is_waited_for(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", pods=2)
    world.change_set(removal={"after": "10s", "maxPerMinute": 600})
    refusal = TooManyRequests(429, "TooManyRequests", "disruption budget")
    fault = world.server.fail(
        refusal,
        verb="create",
        kind=kinds.PODS,
        subresource="eviction",
        when=lambda request: request.name == "a-replicaset-0",
        times=None,
    )
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(60)
        assert world.pods("a") == 1
        assert world.targets() == ["a", "b"]
        assert world.server.count("create", kinds.PODS, "eviction") < 15
        fault.times = 0
        await asyncio.sleep(15)
        assert world.targets() == ["b"]


async def test_a_new_target_connects_before_another_is_drained(clock: Clock) -> None:
    world = with_pods(clock, "east", "other", pods=3)
    world.change_set(removal={"after": "10s", "maxPerMinute": 600})
    async with world.leading():
        world.connects = False
        world.add_profile("west")
        world.remove_profile("east")
        await asyncio.sleep(60)
        assert world.is_cordoned("east")
        assert (world.targets(), world.pods("east")) == (["east", "other", "west"], 3)
        world.connect("west")
        await asyncio.sleep(5)
        assert world.targets() == ["other", "west"]


async def test_a_new_target_that_never_connects_holds_no_drain_up_for_long(clock: Clock) -> None:
    world = with_pods(clock, "east", "other", pods=3)
    world.change_set(removal={"after": "10s", "maxPerMinute": 600})
    async with world.leading():
        world.connects = False
        world.add_profile("west")
        world.remove_profile("east")
        await asyncio.sleep(deciding.CONNECTING - 10)
        assert world.pods("east") == 3
        await asyncio.sleep(20)
        assert world.targets() == ["other", "west"]


async def test_a_profile_that_is_back_in_time_uncordons_and_nothing_else(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", pods=3)
    async with world.leading():
        uid = objects.uid(world.target("a"))
        world.remove_profile("a")
        await asyncio.sleep(200)
        assert world.is_cordoned("a")
        world.add_profile("a")
        await asyncio.sleep(2)
        assert not world.is_cordoned("a")
        assert keys.CORDONED_BY_SET not in objects.annotations(world.node("a"))
        assert keys.PROFILE_GONE not in objects.annotations(world.target("a"))
        await asyncio.sleep(1000)
        assert (objects.uid(world.target("a")), world.pods("a")) == (uid, 3)


async def test_a_profile_that_is_back_at_once_cordons_nothing(clock: Clock) -> None:
    world = with_pods(clock, "a", "b")
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(1)
        world.add_profile("a")
        await asyncio.sleep(100)
        assert world.server.count("patch", kinds.NODES) == 0


async def test_a_node_that_somebody_has_cordoned_stays_so(clock: Clock) -> None:
    world = with_pods(clock, "b")
    world.add_profile("a")
    world.add_node("a", unschedulable=True)
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(100)
        world.add_profile("a")
        await asyncio.sleep(100)
        assert world.is_cordoned("a")
        assert keys.PROFILE_GONE not in objects.annotations(world.target("a"))


async def test_a_profile_that_is_not_selected_any_more_goes_likewise(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", "c")
    world.change_set(profiles={"names": ["a", "b", "c"]}, removal={"after": "0s"})
    async with world.leading():
        world.change_set(profiles={"names": ["a", "b"]})
        await asyncio.sleep(10)
        assert world.targets() == ["a", "b"]


@pytest.mark.parametrize(("policy", "cordoned"), [("Cordon", True), ("Orphan", False)])
async def test_a_set_may_keep_its_targets(policy: str, cordoned: bool, clock: Clock) -> None:
    world = with_pods(clock, "a", "b", pods=2)
    world.change_set(removal={"policy": policy})
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(2000)
        assert world.targets() == ["a", "b"]
        assert (world.pods("a"), world.is_cordoned("a")) == (2, cordoned)
        assert world.reasons()["fleet/a"] == ("Cordoned" if cordoned else "ProfileGone")
        world.change_set(removal={"policy": "Orphan"})
        await asyncio.sleep(5)
        assert not world.is_cordoned("a")


async def test_a_new_leader_goes_on_where_the_last_one_was(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", pods=10)
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(100)
        since = objects.annotations(world.target("a"))[keys.PROFILE_GONE]

    async with world.leading():
        await asyncio.sleep(150)
        assert objects.annotations(world.target("a"))[keys.PROFILE_GONE] == since
        assert world.pods("a") == 10

    for _ in range(5):
        async with world.leading():
            await asyncio.sleep(25)

    async with world.leading():
        assert world.targets() == ["b"]


async def test_most_profiles_at_once_are_not_believed(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", "c", "d")
    async with world.leading():
        world.remove_profile("a", "b", "c")
        await asyncio.sleep(5)
        assert world.state("RemovalHeld") == ("True", "MostProfilesGone")
        assert 'vnode.dev/confirm-removal="1"' in world.message("RemovalHeld")

    async with world.leading():
        await asyncio.sleep(2000)
        assert world.targets() == ["a", "b", "c", "d"]
        assert not any(map(world.is_cordoned, "abcd"))
        for name in "abc":
            world.add_profile(name)

        await asyncio.sleep(3)
        assert world.state("RemovalHeld") == ("False", "NothingHeld")


async def test_profiles_that_go_within_a_minute_go_at_once(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", "c", "d")
    async with world.leading():
        for name in "abc":
            world.remove_profile(name)
            await asyncio.sleep(20)

        await asyncio.sleep(2000)
        assert world.state("RemovalHeld")[0] == "True"
        assert world.targets() == ["a", "b", "c", "d"]
        assert not world.is_cordoned("c")


async def test_profiles_that_go_one_after_the_other_go(clock: Clock) -> None:
    world = with_pods(clock, "a", "b", "c", "d")
    async with world.leading():
        for name in "abc":
            world.remove_profile(name)
            await asyncio.sleep(61)

        await asyncio.sleep(2000)
        assert world.targets() == ["d"]


async def test_what_is_confirmed_is_removed_and_no_more(clock: Clock) -> None:
    world = with_pods(clock, *"abcdefg")
    world.change_set(removal={"after": "10s"})
    async with world.leading():
        world.remove_profile(*"abcd")
        await asyncio.sleep(100)
        world.confirm(7)
        await asyncio.sleep(100)
        assert len(world.targets()) == 7
        world.confirm(1)
        await asyncio.sleep(30)
        assert world.targets() == ["e", "f", "g"]
        assert keys.CONFIRM_REMOVAL not in objects.annotations(world.set())
        world.remove_profile("e", "f")
        await asyncio.sleep(100)
        assert world.state("RemovalHeld")[0] == "True"
        assert world.targets() == ["e", "f", "g"]


async def test_a_kind_that_is_removed_takes_no_targets_along(clock: Clock) -> None:
    world = with_pods(clock, "a", "b")
    async with world.leading():
        world.remove_profile("a", "b")
        world.server.remove(kinds.CRDS, CRD["metadata"]["name"])
        await asyncio.sleep(1000)
        assert world.targets() == ["a", "b"]
        assert world.state() == ("False", "InventoryNotServed")
        assert world.state("RemovalHeld") == ("True", "InventoryNotServed")
        world.server.add(kinds.CRDS, CRD)
        await asyncio.sleep(1000)
        assert world.targets() == ["a", "b"]
        world.add_profile("a")
        world.add_profile("b")
        await asyncio.sleep(5)
        assert world.state("RemovalHeld")[0] == "False"
        assert not world.is_cordoned("a")


async def test_a_kind_that_is_about_to_go_is_noticed_before_its_profiles(clock: Clock) -> None:
    world = with_pods(clock, "a", "b")
    async with world.leading():
        world.server.freeze()  # what follows reaches the agent in any order
        world.server.change(
            *(kinds.CRDS, CRD["metadata"]["name"], ""),
            lambda crd: crd["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
        )
        world.remove_profile("a")
        world.server.thaw()
        await asyncio.sleep(100)
        assert not world.is_cordoned("a")


async def test_an_empty_inventory_removes_nothing(clock: Clock) -> None:
    world = with_pods(clock, "a")
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(1000)
        assert world.state("RemovalHeld") == ("True", "InventoryEmpty")
        assert world.targets() == ["a"]
        world.confirm()
        await asyncio.sleep(400)
        assert world.targets() == []


async def test_an_inventory_that_does_not_answer_removes_nothing(clock: Clock) -> None:
    world = with_pods(clock, "a", "b")
    async with world.leading():
        world.server.fail(Unreachable("gone"), kind=kinds.CLUSTER_PROFILES, times=None)
        world.server.end_watches(kinds.CLUSTER_PROFILES)
        world.remove_profile("a")
        await asyncio.sleep(1000)
        assert world.targets() == ["a", "b"]
        assert not world.is_cordoned("a")


async def test_a_profile_that_only_the_store_misses_is_not_gone(clock: Clock) -> None:
    world = with_pods(clock, "a", "b")
    async with world.leading():
        watch = world.server.watches(kinds.CLUSTER_PROFILES)
        assert len(watch) == 1
        gone = world.server.find(kinds.CLUSTER_PROFILES, "a", "fleet") or {}
        world.remove_profile("a")
        await asyncio.sleep(1)
        world.server.freeze()
        world.server.add(kinds.CLUSTER_PROFILES, gone)
        world.server.thaw()
        await asyncio.sleep(100)
        assert not world.is_cordoned("a")


async def test_targets_of_a_set_that_has_become_anothers_are_left_alone(clock: Clock) -> None:
    world = with_pods(clock, "a", "b")
    async with world.leading():
        world.server.change(
            *(kinds.CLUSTER_TARGETS, "a", ""), lambda obj: obj["metadata"].pop("labels")
        )
        world.remove_profile("a")
        await asyncio.sleep(1000)
        assert world.targets() == ["a", "b"]


async def test_an_agent_that_starts_without_the_kind_keeps_what_an_earlier_one_has_made(
    clock: Clock,
) -> None:
    world = with_pods(clock, *"abc")
    world.change_set(removal={"after": "1000s"})
    async with world.leading():
        world.remove_profile("a")
        await asyncio.sleep(10)
        assert world.is_cordoned("a")

    world.server.remove(kinds.CRDS, CRD["metadata"]["name"])
    world.remove_profile("b", "c")
    async with world.leading():
        await asyncio.sleep(3000)
        assert world.targets() == ["a", "b", "c"]
        assert world.state("RemovalHeld") == ("True", "InventoryNotServed")
        assert world.reasons()["fleet/a"] == "Cordoned"
        assert not world.is_cordoned("b")
