"""Waiting in the fuzzer: for changes of both clusters of a pod, and without listeners that stay."""

from __future__ import annotations

import asyncio
import random

import aiohttp
import pytest

from tests.apiserver.status import StatusError
from tests.fuzz import typed
from tests.fuzz.environment import FuzzEnvironment
from tests.fuzz.players import TargetPlayers
from vnode.api import kinds

pytestmark = pytest.mark.looptime


@pytest.fixture
async def env(tmp_path):
    return FuzzEnvironment(tmp_path, random.Random(1))


@pytest.mark.parametrize("cluster", ["source", "honest"])
async def test_a_change_of_either_cluster_ends_the_wait(env, cluster):
    server = env.servers[cluster]
    before = len(server.store.changed)
    made = {"metadata": {"name": "a"}}
    asyncio.get_running_loop().call_later(5, server.add, kinds.NAMESPACES, made)
    began = asyncio.get_running_loop().time()
    assert await env.happens(lambda: server.find(kinds.NAMESPACES, "a") is not None, 60)
    assert asyncio.get_running_loop().time() - began == pytest.approx(5, abs=0.1)
    assert len(server.store.changed) == before


async def test_what_does_not_happen_is_told_in_time(env):
    began = asyncio.get_running_loop().time()
    assert not await env.happens(lambda: False, 60)
    assert asyncio.get_running_loop().time() - began == pytest.approx(60, abs=0.1)


async def test_a_pod_that_comes_after_the_end_of_its_owner_is_collected(env):
    owner = {"apiVersion": "v1", "kind": "PodChaperon", "name": "a", "uid": "gone"}
    metadata = {"name": "a", "namespace": "ns", "ownerReferences": [{**owner, "controller": True}]}
    async with aiohttp.ClientSession() as session:
        players = TargetPlayers(env.honest, session, extender="")
        players.follow()
        env.honest.add(kinds.PODS, {"metadata": metadata, "spec": {"containers": []}})
        assert await env.happens(lambda: env.honest.find(kinds.PODS, "a", "ns") is None, 60)
        await players.stop()


async def test_what_etcd_would_not_store_is_refused():
    with pytest.raises(StatusError, match="too large"):
        typed.storable({"data": "x" * 1_600_000})
