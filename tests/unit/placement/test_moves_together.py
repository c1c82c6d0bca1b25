"""A workload that is kept together is moved as a whole, to one cluster with room for all of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.placement.moving_world import FrankRoom, MovingWorld
from tests.unit.pods.policies import entry, spread
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.scheduling.placement.moves import Drain, Failback, IntOrPercent, RescheduleTrigger
from vnode.scheduling.placement.policy import Mode, PlacementTarget

pytestmark = pytest.mark.looptime


def together(clock: Clock, *places: int, **fields: Any) -> MovingWorld:
    """Have targets with that room, and a policy that keeps workloads together."""
    rooms = [FrankRoom(f"c{number}", clock, count) for number, count in enumerate(places, 1)]
    targets = (PlacementTarget(spread().clusters),)
    return MovingWorld(clock, spread(*targets, mode=Mode.SINGLE, **fields), *rooms)


def change(world: MovingWorld, **fields: Any) -> None:
    assert world.policy.policy is not None
    world.change_policy(replace(world.policy.policy, **fields))


def drain(world: MovingWorld, number: int, maximum: int = 0) -> None:
    change(world, drains=(Drain(world.rooms[number].node, maximum),))


async def begun(world: MovingWorld, replicas: int, first: str = "c1") -> None:
    """Have so many pods in one target."""
    others = [r for r in world.rooms if r.link.target.name != first]
    places = {r: r.places for r in others}
    for room in others:
        room.grow(0)

    world.scale(replicas)
    await asyncio.sleep(30)
    assert world.living() == {first: replicas}
    for room, count in places.items():
        room.grow(count)

    await asyncio.sleep(1)


async def test_a_drain_moves_all_of_it_one_by_one_to_where_all_have_room(clock: Clock) -> None:
    world = together(clock, 10, 3, 6)
    async with world.moving():
        await begun(world, 4)
        await asyncio.sleep(3600)
        assert world.evictions == []
        drain(world, 0)
        await asyncio.sleep(60)
        assert world.living() == {"c3": 4}
        assert (len(world.evictions), world.most_missing) == (4, 1)
        message = "placementpolicy/web (drain): 4 of 4 run in c1, planned 0; c3 has room for all"
        assert ("Pod", f"moved by {message}") in world.events_of("Moved")
        change(world, drains=())
        world.scale(6)
        await asyncio.sleep(3600)
        assert world.living() == {"c3": 6}
        assert len(world.evictions) == 4


async def test_a_part_of_it_is_moved_at_once_and_budgets_are_kept(clock: Clock) -> None:
    world = together(clock, 10, 10, failback=Failback(max_concurrent=IntOrPercent(50, True)))
    async with world.moving():
        await begun(world, 4)
        world.forbid(times=3)
        drain(world, 0)
        await asyncio.sleep(5)
        assert world.living() == {"c1": 4}
        world.scale(5)
        await asyncio.sleep(3)
        assert world.living() == {"c1": 4, "": 1}, "none is added to what is to leave"
        await asyncio.sleep(200)
        assert world.living() == {"c2": 5}
        assert world.most_missing <= 2


async def test_it_stays_where_no_cluster_has_room_for_all(clock: Clock) -> None:
    world = together(clock, 10, 3, 2)
    async with world.moving():
        await begun(world, 4)
        drain(world, 0)
        await asyncio.sleep(600)
        assert world.evictions == []
        why = "4 pods wait to be moved (drain): no other cluster has room for all 4 of its pods"
        assert world.events_of("MoveWaits") == [
            ("PlacementPolicy", f"deployment/default/web: {why}")
        ]
        world.rooms[2].grow(4)
        await asyncio.sleep(60)
        assert world.living() == {"c3": 4}


async def test_a_drain_that_leaves_room_for_all_of_it_moves_nothing(clock: Clock) -> None:
    world = together(clock, 10, 10)
    async with world.moving():
        await begun(world, 4)
        drain(world, 0, maximum=4)
        await asyncio.sleep(300)
        assert world.evictions == []
        drain(world, 0, maximum=3)
        await asyncio.sleep(60)
        assert world.living() == {"c2": 4}


async def test_no_other_cluster_is_chosen_before_all_are_there(clock: Clock) -> None:
    world = together(clock, 10, 4, 20)
    async with world.moving():
        await begun(world, 4, "c2")
        change(world, drains=(Drain(world.rooms[1].node),))
        await asyncio.sleep(5)
        goal = "c3"
        assert goal in world.living()
        assert len(world.evictions) < 4
        world.rooms[2].grow(3)
        world.rooms[0].grow(100)
        await asyncio.sleep(300)
        assert world.living() == {"c2": 1, "c3": 3}
        [*_, (_, message)] = world.events_of("MoveWaits")
        assert message.endswith("1 pods wait to be moved (drain): no room in c3")
        world.rooms[2].grow(4)
        await asyncio.sleep(60)
        assert world.living() == {"c3": 4}


async def test_a_move_that_has_begun_goes_on_without_its_drain(clock: Clock) -> None:
    world = together(clock, 10, 10)
    async with world.moving():
        await begun(world, 6)
        drain(world, 0)
        await asyncio.sleep(6)
        assert 0 < len(world.evictions) < 6
        change(world, drains=())
        await asyncio.sleep(60)
        assert world.living() == {"c2": 6}


async def test_a_policy_of_another_mode_ends_the_move(clock: Clock) -> None:
    world = together(clock, 10, 10)
    async with world.moving():
        await begun(world, 6)
        drain(world, 0)
        await asyncio.sleep(6)
        entries = tuple(entry(room.node, weight=1) for room in world.rooms)
        change(world, drains=(), mode=Mode.SPREAD, targets=entries)
        await asyncio.sleep(60)
        assert 0 < len(world.evictions) < 6
        assert not world.cache.workloads.of(world.pods()[0], "").destination


async def test_a_cluster_that_takes_no_pods_any_more_is_given_up(clock: Clock) -> None:
    world = together(clock, 20, 19, 20)
    async with world.moving():
        await begun(world, 6)
        drain(world, 0)
        await asyncio.sleep(6)
        assert "c3" in world.living()
        nodes = [world.rooms[number].node for number in (0, 2)]
        change(world, drains=tuple(map(Drain, nodes)))
        await asyncio.sleep(60)
        assert world.living() == {"c2": 6}


async def test_the_only_pod_goes_where_it_was_moved_to(clock: Clock) -> None:
    class Late(MovingWorld):
        """Makes a pod anew once the former is gone, as the owner of a StatefulSet does."""

        def _replace(self) -> None:
            if not self.server.all(kinds.PODS):
                super()._replace()

        def _gone(self, name: str) -> None:
            super()._gone(name)
            self._replace()

    rooms = [FrankRoom(f"c{number}", clock, 5) for number in (1, 2, 3)]
    world = Late(clock, spread(PlacementTarget(spread().clusters), mode=Mode.SINGLE), *rooms)
    async with world.moving():
        await begun(world, 1)
        drain(world, 0)
        await asyncio.sleep(2)
        [(_, message), *_] = world.events_of("Moved")
        goal = message.rpartition("; ")[2].partition(" ")[0]
        await asyncio.sleep(60)
        assert world.living() == {goal: 1}
        assert len(world.evictions) == 1


async def test_a_rebalance_brings_together_what_is_apart(clock: Clock) -> None:
    world = together(clock, 10, 10, 10)
    async with world.moving():
        planned = world.policy.policy
        assert planned is not None
        entries = [entry(room.node, weight=1) for room in world.rooms]
        world.change_policy(spread(*entries))
        world.scale(6)
        await asyncio.sleep(30)
        assert world.living() == {"c1": 2, "c2": 2, "c3": 2}
        world.change_policy(planned)
        await asyncio.sleep(600)
        assert world.evictions == []
        world.rebalance(maxConcurrent=2)
        await asyncio.sleep(90)
        assert list(world.living().values()) == [6]
        status = world.rebalanced()
        assert (status["phase"], status["moved"], status["remaining"]) == ("Complete", 4, 0)
        world.rebalance("again")
        await asyncio.sleep(60)
        status = world.rebalanced("again")
        assert (status["phase"], status["moved"]) == ("Complete", 0)


async def test_a_rebalance_finds_a_place_for_what_waits(clock: Clock) -> None:
    world = together(clock, 4, 10)
    async with world.moving():
        await begun(world, 4)
        world.scale(6)
        await asyncio.sleep(150)
        assert world.living() == {"c1": 4, "": 2}
        world.rebalance()
        await asyncio.sleep(90)
        assert world.living() == {"c2": 6}
        assert world.rebalanced()["phase"] == "Complete"


async def test_pods_that_wait_go_first_where_a_budget_allows_no_eviction(clock: Clock) -> None:
    world = together(clock, 4, 10)
    async with world.moving():
        await begun(world, 4)
        world.scale(5)
        world.forbid()
        await asyncio.sleep(150)
        world.rebalance()
        await asyncio.sleep(30)
        assert world.living() == {"c1": 4, "c2": 1}


async def test_no_pod_begins_where_not_all_may_stay(clock: Clock) -> None:
    world = together(clock, 10, 10)
    async with world.moving():
        drain(world, 0, maximum=1)
        world.rooms[1].set_healthy(False)
        world.scale(2)
        await asyncio.sleep(30)
        assert world.living() == {"": 2}
        world.rooms[1].set_healthy(True)
        await asyncio.sleep(30)
        assert world.living() == {"c2": 2}
        assert world.evictions == []


async def test_a_rebalance_that_has_no_place_says_so(clock: Clock) -> None:
    world = together(clock, 4, 5)
    async with world.moving():
        await begun(world, 4)
        world.scale(6)
        await asyncio.sleep(150)
        world.rebalance()
        await asyncio.sleep(700)
        status = world.rebalanced()
        assert status["phase"] == "Failed"
        assert "no other cluster has room for all 6 of its pods" in status["message"]
        assert world.evictions == []


async def test_a_policy_that_leaves_its_cluster_moves_it_if_it_says_so(clock: Clock) -> None:
    world = together(clock, 10, 10)
    async with world.moving():
        await begun(world, 3)
        others = (entry(world.rooms[1].node),)
        change(world, targets=others)
        await asyncio.sleep(300)
        assert world.evictions == []
        change(world, targets=others, reschedule=frozenset({RescheduleTrigger.POLICY}))
        await asyncio.sleep(60)
        assert world.living() == {"c2": 3}


async def test_pods_that_nobody_replaces_keep_the_others(clock: Clock) -> None:
    world = together(clock, 10, 10, group_by="app")
    async with world.moving():
        world.add("bare", cpu="1", labels={"app": "web"})
        await asyncio.sleep(5)
        world.replicas = 3
        world.scale(4)
        await asyncio.sleep(30)
        [home] = world.living()
        drain(world, 0 if home == "c1" else 1)
        await asyncio.sleep(300)
        assert world.evictions == []
        assert any("kept together" in text for _, text in world.events_of("MoveWaits"))
        assert all(objects.node_name(pod) for pod in world.pods())
