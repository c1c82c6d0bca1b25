"""When workloads are told to retry whose target is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.kueue.environment import KueueEnvironment, pod_set
from vnode.api import keys, taints
from vnode.api.objects import Object
from vnode.kueue.controller import WorkloadChecks

pytestmark = pytest.mark.looptime

NOT_READY = {"key": keys.NODE_FAILURES[0], "operator": "Exists", "effect": taints.NO_EXECUTE}


@pytest.fixture
async def env(clock: Any) -> KueueEnvironment:
    return KueueEnvironment(clock)


async def start(env: KueueEnvironment, checks: WorkloadChecks, *seconds: int | None) -> Object:
    """Have a workload run in t1 with pods that tolerate its loss for so long; return the last."""
    env.lost = env.room("t1", (0, 4, ""))
    env.workload("a", pod_set("main", len(seconds)))
    await asyncio.sleep(1)
    assert env.states("a") == ["Ready"]
    pod: Object = {}
    for number, each in enumerate(seconds):
        fields = {} if each is None else {"tolerationSeconds": each}
        tolerations = [{**NOT_READY, **fields}]
        pod = env.come(checks, "a", f"p{number}", env.lost, tolerations=tolerations)

    return pod


async def test_a_workload_goes_before_the_first_of_its_pods_is_evicted(
    env: KueueEnvironment,
) -> None:
    async with env.answers() as checks:
        await start(env, checks, 300, 120)
        env.losses.lose(env.lost)
        await asyncio.sleep(109)
        assert env.states("a") == ["Ready"]
        await asyncio.sleep(2)
        entry = env.entry("a")
        assert (entry["state"], entry["requeueAfterSeconds"]) == ("Retry", 1)
        assert entry["message"] == "target t1, which it is held in, is lost"


async def test_it_is_let_in_elsewhere_then(env: KueueEnvironment) -> None:
    async with env.answers() as checks:
        await start(env, checks, 60)
        env.room("t2", (0, 4, ""))
        env.losses.lose(env.lost)
        await asyncio.sleep(55)
        env.cache.remove_node(env.lost)
        env.requeue("a")
        await asyncio.sleep(1)
        assert env.states("a") == ["Ready"]
        assert env.node_of("a") == "t2"
        env.losses.find(env.lost)
        env.losses.lose(env.lost)
        await asyncio.sleep(600)
        assert env.states("a") == ["Ready"]


async def test_a_short_outage_does_nothing(env: KueueEnvironment) -> None:
    async with env.answers() as checks:
        await start(env, checks, 5)
        env.losses.lose(env.lost)
        await asyncio.sleep(25)
        env.losses.find(env.lost)
        await asyncio.sleep(600)
        assert env.states("a") == ["Ready"]


async def test_pods_that_stay_without_end_are_left_until_somebody_evicts_them(
    env: KueueEnvironment,
) -> None:
    async with env.answers() as checks:
        pod = await start(env, checks, None)
        env.losses.lose(env.lost)
        await asyncio.sleep(3600)
        assert env.states("a") == ["Ready"]
        ending = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "now"}}
        checks.on_pod(pod, ending)
        await asyncio.sleep(31)
        assert env.states("a") == ["Retry"]


async def test_nothing_is_done_while_nobody_knows_whether_the_target_is_lost(
    env: KueueEnvironment,
) -> None:
    async with env.answers() as checks:
        await start(env, checks, 60)
        env.losses.is_known = False
        env.losses.lose(env.lost)
        await asyncio.sleep(600)
        assert env.states("a") == ["Ready"]
        env.losses.is_known = True
        await asyncio.sleep(3)
        assert env.states("a") == ["Retry"]


async def test_a_new_leader_finds_those_of_targets_that_are_lost_already(
    env: KueueEnvironment,
) -> None:
    async with env.answers() as checks:
        await start(env, checks, 60)

    env.losses.lose(env.lost)
    async with env.answers():
        await asyncio.sleep(31)  # none of its pods is known to this one
        assert env.states("a") == ["Retry"]
