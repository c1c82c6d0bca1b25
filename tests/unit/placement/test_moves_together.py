"""A workload that is kept together is moved as a whole, to one cluster with room for all of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment
from tests.unit.pods.policies import entry, spread
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.planning.move_policy import Drain, Failback, IntOrPercent, RescheduleTrigger
from vnode.planning.policy import Mode, PlacementTarget

pytestmark = pytest.mark.looptime


def together(clock: Clock, *places: int, **fields: Any) -> MovingEnvironment:
    """Have targets with that room, and a policy that keeps workloads together."""
    rooms = [FrankRoom(f"c{number}", clock, count) for number, count in enumerate(places, 1)]
    targets = (PlacementTarget(spread().clusters),)
    return MovingEnvironment(clock, spread(*targets, mode=Mode.SINGLE, **fields), *rooms)


def change(env: MovingEnvironment, **fields: Any) -> None:
    assert env.policy.policy is not None
    env.change_policy(replace(env.policy.policy, **fields))


def drain(env: MovingEnvironment, number: int, maximum: int = 0) -> None:
    change(env, drains=(Drain(env.rooms[number].node, maximum),))


async def begun(env: MovingEnvironment, replicas: int, first: str = "c1") -> None:
    """Have so many pods in one target."""
    others = [r for r in env.rooms if r.link.target.name != first]
    places = {r: r.places for r in others}
    for room in others:
        room.grow(0)

    env.scale(replicas)
    await asyncio.sleep(30)
    assert env.living() == {first: replicas}
    for room, count in places.items():
        room.grow(count)

    await asyncio.sleep(1)


async def test_a_drain_moves_all_of_it_one_by_one_to_where_all_have_room(clock: Clock) -> None:
    env = together(clock, 10, 3, 6)
    async with env.moving():
        await begun(env, 4)
        await asyncio.sleep(3600)
        assert env.evictions == []
        drain(env, 0)
        await asyncio.sleep(60)
        assert env.living() == {"c3": 4}
        assert (len(env.evictions), env.most_missing) == (4, 1)
        message = "placementpolicy/web (drain): 4 of 4 run in c1, planned 0; c3 has room for all"
        assert ("Pod", f"moved by {message}") in env.events_of("Moved")
        change(env, drains=())
        env.scale(6)
        await asyncio.sleep(3600)
        assert env.living() == {"c3": 6}
        assert len(env.evictions) == 4


async def test_a_part_of_it_is_moved_at_once_and_budgets_are_kept(clock: Clock) -> None:
    env = together(clock, 10, 10, failback=Failback(max_concurrent=IntOrPercent(50, True)))
    async with env.moving():
        await begun(env, 4)
        env.forbid(times=3)
        drain(env, 0)
        await asyncio.sleep(5)
        assert env.living() == {"c1": 4}
        env.scale(5)
        await asyncio.sleep(3)
        assert env.living() == {"c1": 4, "": 1}, "none is added to what is to leave"
        await asyncio.sleep(200)
        assert env.living() == {"c2": 5}
        assert env.most_missing <= 2


async def test_it_stays_where_no_cluster_has_room_for_all(clock: Clock) -> None:
    env = together(clock, 10, 3, 2)
    async with env.moving():
        await begun(env, 4)
        drain(env, 0)
        await asyncio.sleep(600)
        assert env.evictions == []
        why = "4 pods wait to be moved (drain): no other cluster has room for all 4 of its pods"
        assert env.events_of("MoveWaits") == [("PlacementPolicy", f"deployment/default/web: {why}")]
        env.rooms[2].grow(4)
        await asyncio.sleep(60)
        assert env.living() == {"c3": 4}


async def test_a_drain_that_leaves_room_for_all_of_it_moves_nothing(clock: Clock) -> None:
    env = together(clock, 10, 10)
    async with env.moving():
        await begun(env, 4)
        drain(env, 0, maximum=4)
        await asyncio.sleep(300)
        assert env.evictions == []
        drain(env, 0, maximum=3)
        await asyncio.sleep(60)
        assert env.living() == {"c2": 4}


@pytest.mark.parametrize("budget", [False, True])
async def test_a_workload_that_outgrows_what_a_drain_leaves_is_moved(
    clock: Clock, budget: bool
) -> None:
    """Its new pods have no place where the others are, though none there is too many."""
    env = together(clock, 10, 10)
    async with env.moving():
        await begun(env, 1)
        drain(env, 0, maximum=1)
        await asyncio.sleep(300)
        assert env.evictions == []
        env.forbid(times=3 if budget else 0)
        env.scale(4)
        await asyncio.sleep(200)
        assert env.living() == {"c2": 4}


async def test_no_other_cluster_is_chosen_before_all_are_there(clock: Clock) -> None:
    env = together(clock, 10, 4, 20)
    async with env.moving():
        await begun(env, 4, "c2")
        change(env, drains=(Drain(env.rooms[1].node),))
        await asyncio.sleep(5)
        goal = "c3"
        assert goal in env.living()
        assert len(env.evictions) < 4
        env.rooms[2].grow(3)
        env.rooms[0].grow(100)
        await asyncio.sleep(300)
        assert env.living() == {"c2": 1, "c3": 3}
        [*_, (_, message)] = env.events_of("MoveWaits")
        assert message.endswith("1 pods wait to be moved (drain): no room in c3")
        env.rooms[2].grow(4)
        await asyncio.sleep(60)
        assert env.living() == {"c3": 4}


async def test_a_move_that_has_begun_goes_on_without_its_drain(clock: Clock) -> None:
    env = together(clock, 10, 10)
    async with env.moving():
        await begun(env, 6)
        drain(env, 0)
        await asyncio.sleep(6)
        assert 0 < len(env.evictions) < 6
        change(env, drains=())
        await asyncio.sleep(60)
        assert env.living() == {"c2": 6}


async def test_a_policy_of_another_mode_ends_the_move(clock: Clock) -> None:
    env = together(clock, 10, 10)
    async with env.moving():
        await begun(env, 6)
        drain(env, 0)
        await asyncio.sleep(6)
        entries = tuple(entry(room.node, weight=1) for room in env.rooms)
        change(env, drains=(), mode=Mode.SPREAD, targets=entries)
        await asyncio.sleep(60)
        assert 0 < len(env.evictions) < 6
        assert not env.cache.workloads.of(env.pods()[0], "").destination


async def test_a_cluster_that_takes_no_pods_any_more_is_given_up(clock: Clock) -> None:
    env = together(clock, 20, 19, 20)
    async with env.moving():
        await begun(env, 6)
        drain(env, 0)
        await asyncio.sleep(6)
        assert "c3" in env.living()
        nodes = [env.rooms[number].node for number in (0, 2)]
        change(env, drains=tuple(map(Drain, nodes)))
        await asyncio.sleep(60)
        assert env.living() == {"c2": 6}


async def test_the_only_pod_goes_where_it_was_moved_to(clock: Clock) -> None:
    class Late(MovingEnvironment):
        """Makes a pod anew once the former is gone, as the owner of a StatefulSet does."""

        def _replace(self) -> None:
            if not self.server.all(kinds.PODS):
                super()._replace()

        def _gone(self, name: str) -> None:
            super()._gone(name)
            self._replace()

    rooms = [FrankRoom(f"c{number}", clock, 5) for number in (1, 2, 3)]
    env = Late(clock, spread(PlacementTarget(spread().clusters), mode=Mode.SINGLE), *rooms)
    async with env.moving():
        await begun(env, 1)
        drain(env, 0)
        await asyncio.sleep(2)
        [(_, message), *_] = env.events_of("Moved")
        goal = message.rpartition("; ")[2].partition(" ")[0]
        await asyncio.sleep(60)
        assert env.living() == {goal: 1}
        assert len(env.evictions) == 1


async def test_a_rebalance_brings_together_what_is_apart(clock: Clock) -> None:
    env = together(clock, 10, 10, 10)
    async with env.moving():
        planned = env.policy.policy
        assert planned is not None
        entries = [entry(room.node, weight=1) for room in env.rooms]
        env.change_policy(spread(*entries))
        env.scale(6)
        await asyncio.sleep(30)
        assert env.living() == {"c1": 2, "c2": 2, "c3": 2}
        env.change_policy(planned)
        await asyncio.sleep(600)
        assert env.evictions == []
        env.rebalance(maxConcurrent=2)
        await asyncio.sleep(90)
        assert list(env.living().values()) == [6]
        status = env.rebalanced()
        assert (status["phase"], status["moved"], status["remaining"]) == ("Complete", 4, 0)
        env.rebalance("again")
        await asyncio.sleep(60)
        status = env.rebalanced("again")
        assert (status["phase"], status["moved"]) == ("Complete", 0)


async def test_a_rebalance_finds_a_place_for_what_waits(clock: Clock) -> None:
    env = together(clock, 4, 10)
    async with env.moving():
        await begun(env, 4)
        env.scale(6)
        await asyncio.sleep(150)
        assert env.living() == {"c1": 4, "": 2}
        env.rebalance()
        await asyncio.sleep(90)
        assert env.living() == {"c2": 6}
        assert env.rebalanced()["phase"] == "Complete"


async def test_pods_that_wait_go_first_where_a_budget_allows_no_eviction(clock: Clock) -> None:
    env = together(clock, 4, 10)
    async with env.moving():
        await begun(env, 4)
        env.scale(5)
        env.forbid()
        await asyncio.sleep(150)
        env.rebalance()
        await asyncio.sleep(30)
        assert env.living() == {"c1": 4, "c2": 1}


async def test_no_pod_begins_where_not_all_may_stay(clock: Clock) -> None:
    env = together(clock, 10, 10)
    async with env.moving():
        drain(env, 0, maximum=1)
        env.rooms[1].set_healthy(False)
        env.scale(2)
        await asyncio.sleep(30)
        assert env.living() == {"": 2}
        env.rooms[1].set_healthy(True)
        await asyncio.sleep(30)
        assert env.living() == {"c2": 2}
        assert env.evictions == []


async def test_a_rebalance_that_has_no_place_says_so(clock: Clock) -> None:
    env = together(clock, 4, 5)
    async with env.moving():
        await begun(env, 4)
        env.scale(6)
        await asyncio.sleep(150)
        env.rebalance()
        await asyncio.sleep(700)
        status = env.rebalanced()
        assert status["phase"] == "Failed"
        assert "no other cluster has room for all 6 of its pods" in status["message"]
        assert env.evictions == []


async def test_a_policy_that_leaves_its_cluster_moves_it_if_it_says_so(clock: Clock) -> None:
    env = together(clock, 10, 10)
    async with env.moving():
        await begun(env, 3)
        others = (entry(env.rooms[1].node),)
        change(env, targets=others)
        await asyncio.sleep(300)
        assert env.evictions == []
        change(env, targets=others, reschedule=frozenset({RescheduleTrigger.POLICY}))
        await asyncio.sleep(60)
        assert env.living() == {"c2": 3}


async def test_pods_that_nobody_replaces_keep_the_others(clock: Clock) -> None:
    env = together(clock, 10, 10, group_by="app")
    async with env.moving():
        env.add("bare", cpu="1", labels={"app": "web"})
        await asyncio.sleep(5)
        env.replicas = 3
        env.scale(4)
        await asyncio.sleep(30)
        [home] = env.living()
        drain(env, 0 if home == "c1" else 1)
        await asyncio.sleep(300)
        assert env.evictions == []
        assert any("kept together" in text for _, text in env.events_of("MoveWaits"))
        assert all(objects.node_name(pod) for pod in env.pods())
