"""Workloads in `moving_world` with which tests of moves begin."""

from __future__ import annotations

import asyncio

from tests.unit.placement.moving_world import MovingWorld
from vnode.scheduling.placement.policy import Policy


async def overflowed(world: MovingWorld) -> None:
    """Have twenty pods of which four run in the third cluster, for lack of room."""
    world.scale(20)
    await asyncio.sleep(60)
    assert world.living() == {"c1": 6, "c2": 6, "c3": 4, "": 4}
    await asyncio.sleep(90)
    assert world.living() == {"c1": 6, "c2": 6, "c3": 8}


def make_room(world: MovingWorld) -> None:
    """Have room in the first two clusters for all that are planned there."""
    for room in world.rooms[:2]:
        room.grow(8)


async def placed(world: MovingWorld) -> Policy:
    """Have ten pods run where they are planned; return their policy."""
    world.scale(10)
    await asyncio.sleep(30)
    policy = world.policy.policy
    assert policy is not None
    return policy
