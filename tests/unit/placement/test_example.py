"""The example of the documentation, from end to end: three targets of weights 40, 40 and 20.

Two of them have room for six pods each. Scheduling, placeholders, moves and deletion costs work
together, as in a leader.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import NamedTuple

import pytest

from tests.unit.placement.moving_acts import planned
from tests.unit.placement.moving_environment import FrankRoom, MovingEnvironment, fleet
from tests.unit.pods.policies import entry, spread
from vnode.api import kinds, objects, placeholders
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime


class Placed(NamedTuple):
    """Pods of each target, and those that wait for it: pending ones, and placeholders."""

    running: tuple[int, ...]
    waiting: tuple[int, ...] = (0, 0, 0)
    placeholders: tuple[int, ...] = (0, 0, 0)


def found(env: MovingEnvironment) -> Placed:
    """Return where the pods are."""
    living, behind, pending = env.living(), Counter[str](), Counter[str]()
    for pod in env.pods():
        behind.update(placeholders.of(pod))
        if not objects.node_name(pod):
            pending.update(r.node for r in env.rooms if r.find(objects.name(pod)))

    names = [room.link.target.name for room in env.rooms]
    nodes = [room.node for room in env.rooms]
    return Placed(
        tuple(living.get(name, 0) for name in names),
        tuple(pending[node] for node in nodes),
        tuple(behind[node] for node in nodes),
    )


async def test_it_grows_overflows_goes_back_and_shrinks(clock: Clock) -> None:
    env = fleet(clock, 6, 6, 14)
    async with planned(env, clock):
        for replicas, expected in ((10, (4, 4, 2)), (15, (6, 6, 3))):
            env.scale(replicas)
            await asyncio.sleep(30)
            assert found(env) == Placed(expected)

        env.scale(20)
        await asyncio.sleep(110)
        assert found(env) == Placed((6, 6, 4), waiting=(2, 2, 0))
        await asyncio.sleep(20)
        assert found(env) == Placed((6, 6, 8), placeholders=(2, 2, 0))
        await asyncio.sleep(3600)
        assert found(env) == Placed((6, 6, 8), placeholders=(2, 2, 0))

        for room in env.rooms[:2]:
            room.grow(8)

        await asyncio.sleep(8)
        assert found(env) == Placed((6, 6, 8), placeholders=(2, 2, 0))
        await asyncio.sleep(60)
        assert found(env) == Placed((8, 8, 4))
        assert (len(env.evictions), env.most_missing) == (4, 1)

        env.scale(10)
        await asyncio.sleep(30)
        assert found(env) == Placed((4, 4, 2))
        await asyncio.sleep(3600)
        assert found(env) == Placed((4, 4, 2))
        assert len(env.evictions) == 4


async def test_after_overflow_it_shrinks_to_the_plan_and_no_placeholder_is_left(
    clock: Clock,
) -> None:
    env = fleet(clock, 6, 6, 14)
    async with planned(env, clock):
        env.scale(20)
        await asyncio.sleep(180)
        assert found(env) == Placed((6, 6, 8), placeholders=(2, 2, 0))
        env.scale(10)
        await asyncio.sleep(180)
        assert found(env) == Placed((4, 4, 2))
        assert [len(room.server.all(kinds.POD_CHAPERONS)) for room in env.rooms] == [4, 4, 2]
        env.scale(6)
        await asyncio.sleep(60)
        assert found(env) == Placed((2, 2, 2))
        env.scale(15)
        await asyncio.sleep(60)
        assert found(env) == Placed((6, 6, 3))
        assert env.evictions == []


async def test_equal_weights_share_four_pods_two_one_one(clock: Clock) -> None:
    rooms = [FrankRoom(f"c{number}", clock, 20) for number in (1, 2, 3)]
    env = MovingEnvironment(clock, spread(*(entry(room.node, weight=1) for room in rooms)), *rooms)
    async with planned(env, clock):
        env.scale(4)
        await asyncio.sleep(30)
        first = found(env)
        assert sorted(first.running, reverse=True) == [2, 1, 1]
        await asyncio.sleep(3600)
        assert found(env) == first
