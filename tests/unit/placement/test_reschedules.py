"""Pods are moved after changes if their policy reschedules, and as long as it does."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.placement.moving_acts import placed
from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment, fleet
from tests.unit.pods.policies import spread
from vnode.api.clock import Clock
from vnode.planning.cluster_decision import (
    ClusterDecision,
    DecidedCluster,
    DecisionKind,
    DecisionReference,
)
from vnode.planning.move_policy import RescheduleTrigger
from vnode.planning.policy import Policy

pytestmark = pytest.mark.looptime

ON_CHANGE = frozenset({RescheduleTrigger.POLICY})


def turn(planned: Policy) -> Policy:
    """Return a policy that wants two of ten pods in its last cluster, not in its first."""
    first, second, third = planned.targets
    return replace(planned, targets=(replace(first, weight=20), second, replace(third, weight=40)))


async def test_changes_move_pods_only_if_the_policy_says_so(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        turned = turn(await placed(env))
        env.change_policy(turned)
        await asyncio.sleep(600)
        assert env.evictions == []
        env.change_policy(replace(turned, reschedule=ON_CHANGE))
        await asyncio.sleep(60)
        assert env.living() == {"c1": 2, "c2": 4, "c3": 4}
        assert len(env.evictions) == 2


async def test_pods_that_wait_to_be_moved_stay_when_the_policy_wants_it_no_longer(
    clock: Clock,
) -> None:
    env = fleet(clock, 20, 20, 2)
    async with env.moving():
        turned = turn(await placed(env))
        env.change_policy(replace(turned, reschedule=ON_CHANGE))
        await asyncio.sleep(60)
        assert (env.living(), env.evictions) == ({"c1": 4, "c2": 4, "c3": 2}, [])

        env.change_policy(turned)
        await asyncio.sleep(5)
        env.change_policy(replace(turned, reschedule=frozenset({RescheduleTrigger.LABELS})))
        env.rooms[2].grow(20)
        await asyncio.sleep(600)
        assert env.evictions == []


async def test_a_policy_that_takes_the_place_of_another_ends_its_moves(clock: Clock) -> None:
    env = fleet(clock, 20, 20, 20)
    async with env.moving():
        turned = turn(await placed(env))
        env.change_policy(replace(turned, reschedule=ON_CHANGE))
        await asyncio.sleep(1.5)
        assert len(env.evictions) == 1
        env.change_policy(None)
        env.change_policy(turned)
        await asyncio.sleep(600)
        assert len(env.evictions) == 1


async def test_a_decision_that_changes_right_after_the_policy_came_is_a_change(
    clock: Clock,
) -> None:
    rooms = [FrankRoom(f"c{number}", clock, 20) for number in (1, 2)]
    reference = DecisionReference(DecisionKind.PLACEMENT, "default", "web")
    asks = spread(reschedule=frozenset({RescheduleTrigger.DECISION}))
    decided = [
        replace(asks, decision=ClusterDecision(reference, (DecidedCluster(room.node, nodes),)))
        for room in rooms
        for nodes in [frozenset({room.node})]
    ]
    env = MovingEnvironment(clock, None, *rooms)
    async with env.moving():
        env.scale(4)
        await asyncio.sleep(30)
        env.change_policy(decided[0])
        await asyncio.sleep(0.1)
        env.change_policy(decided[1])
        await asyncio.sleep(60)
        assert env.living() == {"c2": 4}
