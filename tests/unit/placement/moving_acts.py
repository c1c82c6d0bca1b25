"""Workloads in `moving_environment` with which tests of moves begin."""

from __future__ import annotations

import asyncio

from tests.unit.placement.moving_environment import MovingEnvironment
from vnode.planning.policy import Policy


async def overflowed(env: MovingEnvironment) -> None:
    """Have twenty pods of which four run in the third cluster, for lack of room."""
    env.scale(20)
    await asyncio.sleep(60)
    assert env.living() == {"c1": 6, "c2": 6, "c3": 4, "": 4}
    await asyncio.sleep(90)
    assert env.living() == {"c1": 6, "c2": 6, "c3": 8}


def make_room(env: MovingEnvironment) -> None:
    """Have room in the first two clusters for all that are planned there."""
    for room in env.rooms[:2]:
        room.grow(8)


async def placed(env: MovingEnvironment) -> Policy:
    """Have ten pods run where they are planned; return their policy."""
    env.scale(10)
    await asyncio.sleep(30)
    policy = env.policy.policy
    assert policy is not None
    return policy
