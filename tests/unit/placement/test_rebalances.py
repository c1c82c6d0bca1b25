"""A Rebalance moves pods to where they are planned now, once, and says how it went."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.placement.moving_world import MovingWorld, fleet
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.placement.moves.rebalances import PROGRESS_DEADLINE

pytestmark = pytest.mark.looptime


async def turned(world: MovingWorld) -> None:
    """Have ten pods that run as their policy planned them before it changed."""
    world.scale(10)
    await asyncio.sleep(30)
    assert world.living() == {"c1": 4, "c2": 4, "c3": 2}
    planned = world.policy.policy
    assert planned is not None
    first, second, third = planned.targets
    targets = (replace(first, weight=20), second, replace(third, weight=40))
    world.change_policy(replace(planned, targets=targets))


def true_conditions(status: Object) -> list[str]:
    return [c["type"] for c in status["conditions"] if c["status"] == "True"]


@pytest.mark.parametrize(
    "spec",
    [{}, {"workloads": [{"kind": "Deployment", "name": "web"}]}, {"policy": "web"}],
)
async def test_it_moves_the_pods_of_its_workloads_and_is_deleted_after_its_time(
    clock: Clock, spec: dict[str, Any]
) -> None:
    world = fleet(clock, 20, 20, 20)
    async with world.moving():
        await turned(world)
        world.rebalance(ttlSecondsAfterFinished=100, **spec)
        await asyncio.sleep(4)
        status = world.rebalanced()
        assert (status["phase"], true_conditions(status)) == ("Progressing", ["Progressing"])
        await asyncio.sleep(60)
        assert world.living() == {"c1": 2, "c2": 4, "c3": 4}
        status = world.rebalanced()
        assert (status["phase"], status["moved"], status["remaining"]) == ("Complete", 2, 0)
        assert true_conditions(status) == ["Complete"]
        assert world.most_missing == 1
        [(_, message)] = [each for each in world.events_of("Complete") if each[0] == "Rebalance"]
        assert message == "2 pods of 1 workloads were moved; all run as planned"
        await asyncio.sleep(100)
        assert world.rebalanced() == {}
        await asyncio.sleep(3600)
        assert len(world.evictions) == 2


async def test_several_move_at_once_if_it_says_so(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 20)
    async with world.moving():
        await turned(world)
        world.rebalance(maxConcurrent="30%")
        await asyncio.sleep(10)
        assert world.living() == {"c1": 2, "c2": 4, "c3": 4}
        assert world.most_missing <= 2


async def test_it_fails_where_there_is_no_room_and_says_so(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 2)
    async with world.moving():
        await turned(world)
        world.rebalance()
        await asyncio.sleep(30)
        assert world.rebalanced()["message"] == ("0 pods were moved, 2 are left: no room in c3")
        await asyncio.sleep(PROGRESS_DEADLINE)
        status = world.rebalanced()
        assert (status["phase"], status["remaining"]) == ("Failed", 2)
        assert world.evictions == []


async def test_it_fails_at_once_for_what_has_no_plan(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 20)
    async with world.moving():
        await turned(world)
        world.rebalance(workloads=[{"kind": "StatefulSet", "name": "db"}])
        world.rebalance("bad", maxConcurrent="lots")
        await asyncio.sleep(30)
        status = world.rebalanced()
        assert status["phase"] == "Failed"
        assert status["message"].startswith("statefulset/default/db: no placement policy")
        assert world.rebalanced("bad")["conditions"][0]["reason"] == "Invalid"
        assert world.server.count("patch", kinds.REBALANCES) == 2
        assert world.evictions == []


async def test_a_budget_holds_it_up(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 20)
    async with world.moving():
        await turned(world)
        world.forbid(times=3)
        world.rebalance()
        await asyncio.sleep(15)
        assert "Cannot evict pod as it would violate" in world.rebalanced()["message"]
        await asyncio.sleep(60)
        assert world.rebalanced()["phase"] == "Complete"


async def test_a_workload_that_ends_meanwhile_is_done(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 2)
    async with world.moving():
        await turned(world)
        world.rebalance()
        await asyncio.sleep(30)
        world.replicas = 0
        for pod in world.pods():
            world.remove(objects.name(pod))

        await asyncio.sleep(30)
        assert world.rebalanced()["phase"] == "Complete"


async def test_a_new_leader_goes_on(clock: Clock) -> None:
    world = fleet(clock, 20, 20, 3)
    async with world.running():
        async with world.leading():
            await turned(world)
            world.rebalance()
            await asyncio.sleep(60)
            assert world.rebalanced()["moved"] == 1

        world.rooms[2].grow(9)
        async with world.leading():
            await asyncio.sleep(60)
            status = world.rebalanced()
            assert (status["phase"], status["moved"]) == ("Complete", 2)
