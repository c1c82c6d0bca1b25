"""Pods of lost clusters are replaced when their policy says so, and no faster."""

from __future__ import annotations

import asyncio
import itertools
import math
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.placement.losing_environment import LosingEnvironment, node_of
from tests.unit.pods.policies import spread
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Denied, ServerError
from vnode.api.objects import Object
from vnode.placement.failover import deciding
from vnode.planning.failover import Failover, Purge
from vnode.planning.policy import Policy

pytestmark = pytest.mark.looptime


@pytest.fixture
def make(clock: Clock) -> Any:
    def made(failover: Failover | None = None, targets: int = 1, pods: int = 3) -> Any:
        env = LosingEnvironment(clock, failover, *(f"c{n + 2}" for n in range(targets)))
        for number in range(pods):
            env.add(f"web-{number}", f"c{number % targets + 2}")

        return env

    return made


async def test_pods_are_evicted_when_their_cluster_has_been_lost_for_long_enough(make: Any) -> None:
    env = make(Failover(60))
    async with env.leading():
        await asyncio.sleep(1000)
        await env.until_lost("c2")
        await asyncio.sleep(58)
        assert env.ending() == []
        await asyncio.sleep(3)
        assert env.ending() == ["web-0", "web-1", "web-2"]
        why = (
            f"moved by placementpolicy/web (failover): node {node_of('c2')} has been lost for 60 s"
        )
        assert env.event_messages() == [why] * 3
        assert env.replacements.why == dict.fromkeys(env.ending(), why)
        pod = env.server.find(kinds.PODS, "web-0", "default")
        disrupted = objects.condition(pod, "DisruptionTarget") or {}
        assert (disrupted["status"], disrupted["message"]) == ("True", why)


async def test_a_cluster_that_comes_back_in_time_keeps_its_pods(make: Any) -> None:
    env = make(Failover(60))
    async with env.leading():
        for _ in range(3):
            await env.until_lost("c2")
            await asyncio.sleep(40)
            env.find("c2")
            await asyncio.sleep(30)

        assert env.ending() == []


async def test_the_time_goes_on_when_another_agent_leads(make: Any) -> None:
    env = make(Failover(60))
    async with env.agent():
        async with env.leading():
            await env.until_lost("c2")
            await asyncio.sleep(40)

        async with env.leading():
            await asyncio.sleep(15)
            assert env.ending() == []
            await asyncio.sleep(10)
            assert len(env.ending()) == 3


async def test_evictions_of_a_policy_are_spread_over_all_its_clusters(make: Any) -> None:
    env = make(Failover(10, per_minute=6), targets=2, pods=6)
    async with env.leading():
        await env.until_lost("c2", "c3")
        await asyncio.sleep(11)
        assert len(env.ending()) == 1
        await asyncio.sleep(20)
        assert len(env.ending()) == 3
        env.find("c2", "c3")
        await asyncio.sleep(15)  # until they are probed again
        before = len(env.ending())
        await asyncio.sleep(600)
        assert len(env.ending()) == before < 6


async def test_pods_with_a_higher_priority_come_first(make: Any) -> None:
    env = make(Failover(10, per_minute=6))
    env.add("important", priority=10)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(11)
        assert env.ending() == ["important"]


async def test_never_evicts_none(make: Any) -> None:
    env = make(Failover(purge=Purge.NEVER))
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(10_000)
        assert env.ending() == []
        env.change_policy(spread(failover=Failover(60)))
        await asyncio.sleep(5)
        assert len(env.ending()) == 3


@pytest.mark.parametrize("policy", [None, spread()])
async def test_pods_whose_policy_has_ended_are_evicted_as_by_kubernetes(
    make: Any, policy: Policy | None
) -> None:
    env = make(Failover(10))
    env.change_policy(policy)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(298)
        assert env.ending() == []
        await asyncio.sleep(5)
        assert len(env.ending()) == 3


@pytest.mark.no_cover
async def test_pods_without_a_policy_are_evicted_as_their_tolerations_say(make: Any) -> None:
    """Kubernetes may set no taint, as where many nodes are lost at once."""
    env = make(Failover(10), targets=4, pods=0)
    for target in env.targets:
        env.add(f"hasty-{target}", target, tolerates=20)
        env.add(f"bound-{target}", target, tolerates=20, proxy=False)
        env.add(f"usual-{target}", target, tolerates=300)
        env.add(f"stays-{target}", target, tolerates=math.inf)

    def of(*names: str) -> list[str]:
        return sorted(f"{name}-{target}" for name in names for target in ("c2", "c3", "c4"))

    async with env.leading():
        await env.until_lost("c2", "c3", "c4")
        await asyncio.sleep(15)
        assert env.ending() == []
        await asyncio.sleep(8)
        assert sorted(env.ending()) == of("bound", "hasty")
        [*others, why] = env.event_messages()
        assert len(others) == 5
        assert why.endswith("has been lost for 20 s, as long as the tolerations of this pod allow")
        assert env.replacements.why == {}
        await asyncio.sleep(270)
        assert len(env.ending()) == 6
        await asyncio.sleep(15)
        assert sorted(env.ending()) == of("bound", "hasty", "usual")
        await asyncio.sleep(10_000)
        assert len(env.ending()) == 9


async def test_a_pod_that_tolerates_no_lost_node_goes_at_once(make: Any) -> None:
    env = make(pods=0)
    env.add("intolerant", tolerates=0)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(1)
        assert env.ending() == ["intolerant"]


async def test_no_change_of_a_policy_has_the_limit_begin_anew(make: Any) -> None:
    env = make(Failover(10, per_minute=1), pods=10)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(11)
        assert len(env.ending()) == 1
        for number in range(8):
            grace = Failover(10, grace=number + 1, per_minute=1 + number % 2)
            env.change_policy(spread(failover=grace))
            await asyncio.sleep(1)
            env.change_policy(None)
            await asyncio.sleep(1)

        env.change_policy(spread(failover=Failover(10, per_minute=1)))
        await asyncio.sleep(25)
        assert len(env.ending()) == 1
        await asyncio.sleep(30)
        assert len(env.ending()) == 2


async def test_an_eviction_that_fails_is_tried_again(make: Any) -> None:
    env = make(Failover(10))
    env.server.fail(ServerError(500, "", "no leader"), verb="delete", times=2)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(20)
        assert sorted(set(env.ending())) == ["web-0", "web-1", "web-2"]
        assert len(env.replacements.why) == 3


SLOW = replace(
    spread(failover=Failover(10, per_minute=6)), name="clusterplacementpolicy/slow", namespace=""
)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_namespaces_take_turns_within_the_limit_of_a_cluster_wide_policy(
    make: Any, elsewhere: bool
) -> None:
    """However many pods one has of it, in which clusters, and whatever their names are."""
    env = make(targets=2, pods=0)
    for number in range(10):
        env.add(f"many-{number}", "c2", namespace="a-crowd")

    for number in range(2):
        env.add(f"few-{number}", "c3" if elsewhere else "c2", namespace="quiet")

    env.change_policy(SLOW)
    async with env.leading():
        await env.until_lost("c2", "c3")
        await asyncio.sleep(45)
        assert env.ending() == ["many-0", "few-0", "many-1", "few-1"]


async def test_a_priority_does_not_use_up_the_limit_of_a_cluster_wide_policy(make: Any) -> None:
    env = make(pods=0)
    for number in range(30):
        env.add(f"many-{number}", namespace="a-crowd", priority=2_000_000_000)

    env.add("few", namespace="quiet")
    env.change_policy(SLOW)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(130)
        assert 5 < env.ending().index("few") <= 11


async def test_pods_of_a_namespace_do_not_wait_for_the_thousands_of_another(make: Any) -> None:
    env = make(Failover(10), pods=0)
    for number in range(30):
        env.add(f"many-{number:02}", namespace="a-crowd")

    env.add("few", namespace="quiet")
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(20)
        assert env.ending().index("few") == 1


async def test_a_pod_that_cannot_be_evicted_holds_up_no_other(make: Any) -> None:
    env = make(Failover(10))
    refused = Denied(403, "Forbidden", "a policy forbids it")
    env.server.fail(refused, verb="patch", when=lambda request: request.name == "web-0", times=None)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(20)
        assert env.ending() == ["web-1", "web-2"]


async def test_pods_of_lost_clusters_are_looked_at_once_a_second_whatever_changes(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    env, looks, real = make(Failover(10_000), pods=20), list[str](), deciding.eviction

    def counted(pod: Object, policy_of: Any) -> Any:
        looks.append(objects.name(pod))
        return real(pod, policy_of)

    monkeypatch.setattr(deciding, "eviction", counted)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(5)
        looks.clear()
        for number in range(200):
            env.change_policy(spread(failover=Failover(10_000, grace=number + 1)))
            await asyncio.sleep(0.05)

        assert 5 * 20 <= len(looks) <= 11 * 20


async def test_a_high_limit_is_used_up_by_a_look_a_second(make: Any) -> None:
    env = make(Failover(10, per_minute=600), pods=60)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(14)
        assert 10 <= len(env.ending()) < 60
        await asyncio.sleep(6)
        assert len(env.ending()) == 60


async def test_a_policy_that_changes_all_the_time_stops_no_pods_of_others(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make(Failover(10), pods=0)
    for number in range(5):
        env.add(f"many-{number}", namespace="a-crowd")
        env.add(f"few-{number}", namespace="quiet")

    quiet, graces = spread(failover=Failover(10)), itertools.count(1)

    def of(pod: Object) -> Policy:
        if objects.namespace(pod) == "quiet":
            return quiet

        return spread(failover=Failover(10, grace=next(graces)))

    monkeypatch.setattr(env.policies, "of", of)
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(15)
        assert sorted(env.ending()) == [f"few-{number}" for number in range(5)]
