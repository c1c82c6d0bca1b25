"""A target is lost because the agent finds it so, and for as long as agents have found it so."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.apiserver.links import link_to
from tests.shifted_clock import ShiftedClock
from tests.unit.placement.losing_environment import NOTICED, US, LosingEnvironment, node_of
from tests.unit.pods.policies import spread
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.server_clock import ClockSkew, ServerClock
from vnode.placement.failover.lost_targets import RECENT, LostTargets
from vnode.placement.status.conditions import of_lost
from vnode.planning.failover import Failover, Purge
from vnode.planning.policy import Clusters
from vnode.planning.policy_node import PlannedNode
from vnode.runtime.link import Link
from vnode.runtime.link_health import UNREACHABLE, LinkHealth
from vnode.runtime.links import Links

pytestmark = pytest.mark.looptime


@pytest.fixture
async def env(clock: Clock) -> LosingEnvironment:
    """Return a target with two pods, one of a policy, that are replaced after a minute."""
    env = LosingEnvironment(clock, Failover(60), "c2")
    env.add("web")
    env.add("own", tolerates=60)
    return env


async def test_an_agent_that_was_away_for_long_evicts_nobody_from_targets_that_were_there(
    env: LosingEnvironment,
) -> None:
    async with env.leading():
        await asyncio.sleep(60)

    await asyncio.sleep(3600)
    async with env.leading():
        await asyncio.sleep(3600)
        assert env.ending() == []


async def test_an_agent_waits_until_it_has_found_out_for_itself(env: LosingEnvironment) -> None:
    """Although an earlier one has seen the target lost, for a minute and more."""
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(30)

    env.find("c2")
    await asyncio.sleep(3600)
    async with env.leading():
        await asyncio.sleep(3600)
        assert env.ending() == []


async def test_what_was_lost_before_and_still_is_counts_from_then(env: LosingEnvironment) -> None:
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(30)

    await asyncio.sleep(60)
    async with env.leading():
        await asyncio.sleep(NOTICED)
        assert sorted(env.ending()) == ["own", "web"]


async def test_what_is_lost_while_no_agent_runs_counts_from_when_one_finds_it_so(
    env: LosingEnvironment,
) -> None:
    async with env.leading():
        await asyncio.sleep(30)

    env.lose("c2")
    await asyncio.sleep(3600)
    async with env.leading():
        await asyncio.sleep(60)
        assert env.ending() == []
        await asyncio.sleep(NOTICED)
        assert len(env.ending()) == 2


async def test_a_link_that_comes_and_goes_counts_from_its_last_end(env: LosingEnvironment) -> None:
    """Whether or not each turn was written to the Target: such writes are limited."""
    async with env.leading():
        for turn in range(10):
            env.conditions.may_write = turn < 2
            await env.until_lost("c2")
            await asyncio.sleep(30)
            env.find("c2")
            await asyncio.sleep(15)

        assert env.ending() == []


async def test_a_target_whose_secret_is_gone_is_lost(env: LosingEnvironment) -> None:
    async with env.leading():
        await asyncio.sleep(30)
        env.conditions.fail("c2")
        await asyncio.sleep(1000)
        assert env.ending() == []  # its connection is there still, and works
        env.links.remove(env.links_of("c2"))
        env.conditions.fail("c2")
        await asyncio.sleep(58)
        assert env.ending() == []
        await asyncio.sleep(5)
        assert len(env.ending()) == 2


async def test_a_deleted_target_is_not_lost_but_gone(env: LosingEnvironment) -> None:
    async with env.leading():
        await env.until_lost("c2")
        env.links.remove(env.links_of("c2"))
        env.conditions.delete("c2")
        await asyncio.sleep(1000)
        assert env.ending() == []


@pytest.mark.parametrize("ahead", [-600.0, 600.0])
async def test_an_agent_whose_clock_is_wrong_counts_like_any_other(
    env: LosingEnvironment, clock: Clock, ahead: float
) -> None:
    async with env.leading():
        await env.until_lost("c2")
        await asyncio.sleep(10)

    skew = ClockSkew()
    skew.seconds = -ahead
    async with env.leading(ServerClock(ShiftedClock(clock, ahead), skew)):
        await asyncio.sleep(15)
        assert env.ending() == []
        await asyncio.sleep(60)
        assert len(env.ending()) == 2


class _One:
    """The conditions of one Target."""

    def __init__(self, recorded: Object | None = None) -> None:
        self._recorded = recorded

    def of_node(self, node: str) -> TargetKey | None:
        return TargetKey("", "c2") if node == node_of("c2") else None

    def found(self, _key: TargetKey) -> Object | None:
        return None

    def recorded(self, _key: TargetKey) -> Object | None:
        return self._recorded

    def subscribe(self, changed: Any) -> None:
        pass


def _lost(link: Link, clock: Clock, recorded: Object | None = None) -> LostTargets:
    links = Links()
    links.add(link)
    lost = LostTargets(links, _One(recorded), clock)
    lost.watch()
    link.probed_at = clock.monotonic()
    link.set_health(LinkHealth(False, UNREACHABLE, "no answer", clock.now()))
    return lost


async def test_what_was_found_before_the_process_stood_still_is_not_known_to_be_so(
    env: LosingEnvironment, clock: Clock
) -> None:
    link = link_to(env.targets["c2"], TargetKey("", "c2"), US, clock)
    lost = _lost(link, clock)
    loss = lost.loss(node_of("c2"))
    assert loss is not None
    assert loss.is_known
    await asyncio.sleep(RECENT + 1)
    loss = lost.loss(node_of("c2"))
    assert loss is not None
    assert not loss.is_known
    link.probed_at = clock.monotonic()
    loss = lost.loss(node_of("c2"))
    assert loss is not None
    assert loss.is_known


@pytest.mark.parametrize(
    "recorded",
    [
        None,
        {"status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"},
        {"status": "False", "lastTransitionTime": "2999-01-01T00:00:00Z"},
        {"status": "False", "lastTransitionTime": "yesterday"},
        {"status": "False", "lastTransitionTime": "1970-01-01T00:00:00"},
        {"status": "False"},
    ],
)
async def test_a_condition_that_says_no_time_of_a_loss_adds_none(
    env: LosingEnvironment, clock: Clock, recorded: Object | None
) -> None:
    link = link_to(env.targets["c2"], TargetKey("", "c2"), US, clock)
    link.set_health(LinkHealth(False, "Connecting", "connecting", clock.now()))
    loss = _lost(link, clock, recorded).loss(node_of("c2"))
    assert loss is not None
    assert loss.seconds < 1


@pytest.mark.parametrize(
    ("failover", "expected"),
    [
        (None, None),
        (Failover(60), "pods are replaced 60 s after that"),
        (Failover(60, per_minute=5), "pods are replaced 60 s after that, 5 in a minute at most"),
        (Failover(purge=Purge.NEVER), "their pods stay, as failover.purge is Never"),
    ],
)
def test_a_policy_says_which_of_its_clusters_are_lost(
    failover: Failover | None, expected: str | None
) -> None:
    nodes = [PlannedNode("c2", {}), PlannedNode("c3", {}), PlannedNode("other", {})]
    policy = spread(failover=failover, clusters=Clusters(exclude=frozenset({"other"})))
    since = datetime(2026, 1, 1, 12, tzinfo=UTC)
    found = of_lost({}, policy, nodes, {"c2": since, "other": since}, since)
    texts = [(one["type"], one["status"], one["reason"], one["message"]) for one in found]
    listed = f"lost: c2 since 2026-01-01T12:00:00Z; {expected}"
    assert texts == ([("ClustersReady", "False", "ClustersLost", listed)] if expected else [])
    assert of_lost({}, policy, nodes, {}, since) == []
