"""Pods on their way: counted where they may be, and checked once more before that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from scheduler_plugins import defaults
from tests import background
from tests.permitted import any_namespace
from tests.unit.scheduling.builders import ManualClock, pod, virtual_node
from vnode.api.clock import Clock
from vnode.scheduling import registry
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.config import Profile
from vnode.scheduling.plugin import Handle
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.registry import Registry

ROOM = {"cpu": 1000, "pods": 100}


class AssumptionsEnvironment:
    """Two nodes with room for one pod each."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock, self.cache = clock or ManualClock(), Cache()
        framework = registry.build(
            Profile(),
            Registry(defaults.PLUGINS),
            defaults.WEIGHTS,
            Handle(namespace_refusal=any_namespace, clock=self.clock),
        )
        self.queue = SchedulingQueue(
            self.clock, framework.queue_sort.sort_key, framework.registrations()
        )
        self.assumptions = Assumptions(framework, self.cache, self.queue, self.clock)
        for name in ("a", "b"):
            self.cache.update_node(virtual_node(name, labels={"zone": name}))
            self.cache.update_free(name, ROOM, ROOM)

    def free(self, node: str) -> int:
        info = self.cache.snapshot().get(node)
        assert info is not None
        assert info.free is not None
        return info.free["cpu"]


@pytest.fixture
def env() -> AssumptionsEnvironment:
    return AssumptionsEnvironment()


def lonely(uid: str) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return pod(uid, labels={"app": "x"}, cpu="1", affinity={"podAntiAffinity": terms})


def spread(uid: str) -> dict[str, Any]:
    constraint = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    return pod(uid, labels={"app": "x"}, cpu="1", topologySpreadConstraints=[constraint])


def test_a_pod_is_counted_where_it_may_be_and_not_where_it_may_not(
    env: AssumptionsEnvironment,
) -> None:
    assert env.assumptions.assume(lonely("p"), "a").is_success
    status = env.assumptions.assume(lonely("q"), "a")
    assert status.plugin == "InterPodAffinity"
    assert not env.cache.has("q", "a")
    assert env.assumptions.assume(lonely("q"), "b").is_success


def test_no_plugin_is_asked_as_long_as_nothing_has_changed(env: AssumptionsEnvironment) -> None:
    seen = env.assumptions.generation
    assert env.assumptions.assume(lonely("p"), "a", seen).is_success
    assert not env.assumptions.assume(lonely("q"), "a", seen).is_success


@pytest.mark.parametrize("nodes", ["a", "ab"])
@pytest.mark.parametrize("make", [lonely, spread])
def test_a_pods_own_candidates_are_no_reason_against_it(
    env: AssumptionsEnvironment, make: Any, nodes: str
) -> None:
    for node in nodes:
        assert env.assumptions.assume(make("p"), node).is_success

    assert env.assumptions.confirm(make("p"), "a").is_success


def test_what_is_reserved_is_subtracted_until_the_target_counts_it(
    env: AssumptionsEnvironment,
) -> None:
    one, none = {"cpu": 1000, "pods": 99}, {"cpu": 0, "pods": 98}
    env.cache.update_free("a", one, one)
    assert env.assumptions.confirm(pod("p", cpu="1"), "a").is_success
    env.cache.update_free("a", one, one)
    assert env.free("a") == 0
    env.assumptions.observe("p", "a")  # it has a node
    env.cache.update_free("a", none, none)
    assert env.free("a") == 0
    assert env.cache.has("p", "a")


def test_a_confirmed_pod_keeps_others_off(env: AssumptionsEnvironment) -> None:
    assert env.assumptions.confirm(lonely("p"), "a").is_success
    assert not env.assumptions.confirm(lonely("q"), "a").is_success


def test_a_node_that_is_gone_takes_nobody(env: AssumptionsEnvironment) -> None:
    env.cache.remove_node("a")
    assert "not connected" in env.assumptions.confirm(pod("p"), "a").message


async def test_a_forgotten_pod_wakes_others_and_not_itself(env: AssumptionsEnvironment) -> None:
    for uid in ("p", "q"):
        env.queue.add(lonely(uid))
        await env.queue.pop()

    env.assumptions.assume(lonely("p"), "a")
    for uid in ("p", "q"):
        env.queue.reject(uid, {"a": frozenset({"InterPodAffinity"})})

    env.assumptions.forget("p", "b")  # was never there
    assert env.queue.place("q") == "unschedulable"
    env.assumptions.forget("p", "a")
    assert (env.queue.place("p"), env.queue.place("q")) == ("unschedulable", "backoff")


async def until_tried_again(env: AssumptionsEnvironment, seconds: float) -> str | None:
    async with background.running(env.assumptions.run()):
        await asyncio.sleep(seconds - 0.01)
        assert env.queue.place("q") == "unschedulable"
        await asyncio.sleep(0.02)
        return env.queue.place("q")


@pytest.mark.looptime
@pytest.mark.parametrize(("observed", "seconds"), [(False, 15), (True, 5)])
async def test_a_promise_that_lapses_wakes_pods_that_did_not_fit(
    clock: Clock, observed: bool, seconds: float
) -> None:
    env = AssumptionsEnvironment(clock)
    env.queue.add(pod("q"))
    await env.queue.pop()
    env.assumptions.assume(pod("p", cpu="1"), "a")
    assert env.free("a") == 0
    env.queue.reject("q", {"a": frozenset({"NodeResourcesFit"})})
    if observed:
        env.assumptions.observe("p", "a")

    assert await until_tried_again(env, seconds) == "active"
    assert env.free("a") == 1000


@pytest.mark.looptime
async def test_a_promise_that_is_made_meanwhile_lapses_in_its_time(clock: Clock) -> None:
    env = AssumptionsEnvironment(clock)
    async with background.running(env.assumptions.run()):
        await asyncio.sleep(1)
        env.assumptions.assume(pod("p", cpu="1"), "a")
        await asyncio.sleep(1)
        env.assumptions.assume(pod("q", cpu="1"), "b")
        env.assumptions.observe("q", "b")
        await asyncio.sleep(4.99)
        assert (env.free("a"), env.free("b")) == (0, 0)
        await asyncio.sleep(0.02)
        assert (env.free("a"), env.free("b")) == (0, 1000)
        await asyncio.sleep(9)
        assert env.free("a") == 1000
