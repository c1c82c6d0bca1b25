"""An owner that is deleted and made anew under its name begins with nothing known of its moves."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment
from tests.unit.pods.policies import entry, spread
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey
from vnode.placement.moves.move import Move
from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.planning.move_policy import STARTING, Drain, Failback, IntOrPercent
from vnode.planning.move_reasons import DRAIN
from vnode.planning.workload import Workload
from vnode.planning.workload_key import PlannedWorkload

pytestmark = pytest.mark.looptime

KEY = "deployment/default/web"


def pod(name: str, node: str, owner: str, uid: str, second: int = 0) -> Object:
    """Return a pod that is ready if it has a node."""
    reference = {"kind": "ReplicaSet", "name": owner, "uid": uid, "controller": True}
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": name,
            "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
            "ownerReferences": [reference],
        },
        "spec": {"nodeName": node},
        "status": {"conditions": [{"type": "Ready", "status": "True" if node else "False"}]},
    }


class WorkloadsEnvironment:
    """A workload of which one pod was moved from `a` to `b`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.workload = Workload(KEY)
        self._policy = spread(entry("a"), entry("b"))
        self.moves = WorkloadMoves(PlannedWorkload(KEY, ""), self._policy, self.workload)
        self.put(pod("old", "a", "web-1", "1"))
        self.settle(0.0)
        self.moves.begin(Move("old", "default/old", "b", DRAIN, OwnerKey("default/1")))

    def put(self, *pods: Any) -> None:
        for each in pods:
            self.workload.put(each)

    def settle(self, now: float) -> None:
        def is_there(move: Move) -> bool:
            return move.uid in self.workload.members

        self.moves.settle(self._policy, self.workload, is_there, now, self._clock.now())


async def test_pods_of_the_new_owner_do_not_seem_to_have_been_moved(clock: Clock) -> None:
    env = WorkloadsEnvironment(clock)
    env.workload.remove("old")
    env.put(pod("new", "a", "web-1", "2", 1))
    env.settle(1.0)
    assert not env.moves.under_way
    assert env.moves.under_way.in_backoff(1.0) == frozenset()
    assert not env.workload.directed


async def test_what_was_in_vain_for_the_former_owner_is_tried_for_the_new_one(
    clock: Clock,
) -> None:
    env = WorkloadsEnvironment(clock)
    env.workload.remove("old")
    env.put(pod("next", "a", "web-1", "1", 1))
    env.settle(1.0)
    assert env.moves.under_way.in_backoff(1.0) == {"b"}
    env.put(pod("new", "a", "web-1", "2", 2))
    env.settle(2.0)
    assert env.moves.under_way.in_backoff(2.0) == frozenset()


async def test_a_rollout_goes_on_with_the_moves(clock: Clock) -> None:
    env = WorkloadsEnvironment(clock)
    env.workload.remove("old")
    env.put(pod("new", "", "web-2", "2", 1))
    env.settle(1.0)
    assert len(env.moves.under_way) == 1
    env.put(pod("new", "b", "web-2", "2", 1))
    env.settle(STARTING)
    assert not env.moves.under_way
    assert env.moves.under_way.in_backoff(STARTING) == frozenset()


async def test_a_deployment_of_the_same_name_is_drained_at_once(clock: Clock) -> None:
    """Its ReplicaSet has another name, as after a rollout, if its template has changed."""
    c1, c2 = FrankRoom("c1", clock, 20), FrankRoom("c2", clock, 20)
    at_once = Failback(max_concurrent=IntOrPercent(2))
    planned = spread(entry(c1.node, weight=1), entry(c2.node, weight=1), failback=at_once)
    env = MovingEnvironment(clock, planned, c1, c2)
    async with env.moving():
        env.scale(4)
        await asyncio.sleep(10)
        env.change_policy(replace(planned, drains=(Drain(c2.node),)))
        await asyncio.sleep(1.5)
        assert len(env.evictions) == 2

        env.scale(0)
        env.change_policy(planned)
        await asyncio.sleep(5)
        env.owner = "web-2"
        env.scale(2)
        await asyncio.sleep(10)
        assert env.living() == {"c1": 1, "c2": 1}
        env.change_policy(replace(planned, drains=(Drain(c2.node),)))
        await asyncio.sleep(10)
        assert env.living() == {"c1": 2}
