"""What is to happen in a simulated cluster happens in its order, though nobody can reach it."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.simulation.clusters import SimulatedCluster

pytestmark = pytest.mark.looptime


async def test_what_waits_for_the_api_server_keeps_its_order() -> None:
    cluster, done = SimulatedCluster("c1", random.Random(1), 0.02), list[int]()
    cluster.down = 1
    for number in range(20):
        cluster.later(1 + number / 10, lambda n=number: done.append(n))

    await asyncio.sleep(1.95)
    assert done == []
    cluster.down = 0
    await asyncio.sleep(5)
    assert done == list(range(20))
