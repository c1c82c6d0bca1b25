"""Waiting in the fuzzer: for changes of both clusters of a pod, and without listeners that stay."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.fuzz.world import World
from vnode.api import kinds

pytestmark = pytest.mark.looptime


@pytest.fixture
async def world(tmp_path):
    return World(tmp_path, random.Random(1))


@pytest.mark.parametrize("cluster", ["source", "honest"])
async def test_a_change_of_either_cluster_ends_the_wait(world, cluster):
    server = world.servers[cluster]
    before = len(server.store.changed)
    made = {"metadata": {"name": "a"}}
    asyncio.get_running_loop().call_later(5, server.add, kinds.NAMESPACES, made)
    began = asyncio.get_running_loop().time()
    assert await world.happens(lambda: server.find(kinds.NAMESPACES, "a") is not None, 60)
    assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.1)
    assert len(server.store.changed) == before


async def test_what_does_not_happen_is_told_in_time(world):
    began = asyncio.get_running_loop().time()
    assert not await world.happens(lambda: False, 60)
    assert asyncio.get_running_loop().time() - began == pytest.approx(60, abs=0.1)
