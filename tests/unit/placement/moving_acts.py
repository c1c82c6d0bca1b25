"""Workloads in `moving_environment` with which tests of moves begin, and all that a leader does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests import background
from tests.apiserver.links import following
from tests.unit.placement.indexed import indexed
from tests.unit.placement.moving_environment import MovingEnvironment
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.kube.informer import Informer
from vnode.placement.deletion_costs import DeletionCosts
from vnode.placement.placeholders.controller import Placeholders
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


@asynccontextmanager
async def planned(env: MovingEnvironment, clock: Clock) -> AsyncIterator[None]:
    """Do all that a leader does for pods with a policy."""
    client = env.server.client()
    proxies, nodes = Informer(client, kinds.PODS), Informer(client, kinds.NODES)
    index = indexed(proxies, env.policy, clock)
    keeper = Placeholders(client, proxies, nodes, env.links, env.cache, env.policy, index, clock)
    costs = DeletionCosts(client, proxies, nodes, env.cache, env.policy, index, clock)
    env.placeholders = keeper.openings
    async with (
        env.moving(),
        following(proxies, nodes),
        background.running(index.run(), keeper.run(), costs.run()),
    ):
        keeper.openings.subscribe(env.moves.look_at)
        yield
