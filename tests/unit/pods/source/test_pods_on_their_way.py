"""Pods whose candidates are on their way: where they count, and what may happen meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from tests.permitted import MANIFESTS
from tests.unit.pods.bound_pods import PARENT
from tests.unit.pods.clusters import SourceCluster, apart
from tests.unit.pods.targets import AT_ONCE, Target, is_silent, only, prefer, rejects, reserves
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.pods import chaperons
from vnode.pods.source import candidate_forms
from vnode.scheduling.queue import MAX_BACKOFF

pytestmark = pytest.mark.looptime


@pytest.fixture
async def pair(clock: Clock) -> tuple[Target, Target]:
    """Return two targets, the first of which is ranked higher."""
    first, second = Target("c2", clock), Target("c3", clock)
    prefer(first, second)
    return first, second


Pair = tuple[Target, Target]


def store(
    target: Target,
    pod: objects.Object,
    *,
    allowed: bool,
    annotations: dict[str, str] | None = None,
    **metadata: str,
) -> None:
    """Have the candidate of a pod be there already."""
    built = chaperons.for_link(pod, PARENT, target.link, manifests=MANIFESTS, allowed=allowed)
    built["metadata"]["annotations"][keys.FORM] = candidate_forms.digest(built)
    built["metadata"] |= metadata
    built["metadata"]["annotations"] |= annotations or {}
    target.server.add(kinds.POD_CHAPERONS, built)


# --- counted on the way


async def test_a_pod_counts_on_its_node_before_its_candidate_is_there(clock: Clock) -> None:
    target = Target("c2", clock)
    target.server.fail(None, verb="create", delay=1, times=None)
    source = SourceCluster(clock, target)
    async with source.running():
        for name in ("a", "b"):
            source.add(name, labels={"app": "a"}, spec=apart("a"))

        await source.until_said("b", "didn't match pod anti-affinity rules")
        assert clock.monotonic() < AT_ONCE
        await source.until_bound("a")
        await asyncio.sleep(100)
        assert target.asked("create") == 1
        assert source.bindings == ["a"]


async def test_a_place_that_is_reserved_is_not_given_away_by_the_next_report(clock: Clock) -> None:
    """A target does not count a pod before that has a node, which takes the pod's own binding."""
    target = Target("c2", clock, cpu="3")
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("reserved", cpu="2")
        await source.until_bound("reserved")
        target.set_room(cpu="3")
        source.add("other", cpu="2", annotations={keys.NO_RESERVATION: ""})
        await asyncio.sleep(5)
        assert source.bindings == ["reserved"]
        scheduled = {"type": "PodScheduled", "status": "True"}
        target.report(target.candidate("reserved"), {"conditions": [scheduled]})
        await asyncio.sleep(1)
        target.set_room(cpu="1")
        await asyncio.sleep(30)
        assert source.bindings == ["reserved"]
        target.set_room(cpu="2")
        await source.until_bound("other")


async def test_pods_without_a_reservation_go_where_nodes_have_room_for_them(
    clock: Clock, pair: Pair
) -> None:
    """Remainders of nodes add up to room for more pods than fit on any one of them."""
    for target, nodes in zip(pair, (4, 9), strict=True):
        target.set_nodes(*["32"] * nodes)

    source = SourceCluster(clock, *pair)
    async with source.running():
        for number in range(10):
            annotations = {keys.NO_RESERVATION: ""}
            source.add(f"p{number}", cpu="20", annotations=annotations)

        await asyncio.sleep(5)
        places = [source.node_of(f"p{number}") for number in range(10)]
        assert sorted(map(places.count, (pair[0].node, pair[1].node))) == [4, 6]


async def test_a_burst_is_sent_to_each_target_as_far_as_it_has_room(
    clock: Clock, pair: Pair
) -> None:
    """What they say they have free does not change while candidates are on their way."""
    for target in pair:
        target.set_room(cpu="5")
        target.server.fail(None, verb="create", delay=1, times=None)

    source = SourceCluster(clock, *pair)
    async with source.running():
        for number in range(10):
            source.add(f"p{number}", cpu="1")

        await asyncio.sleep(AT_ONCE)
        assert [target.asked("create") for target in pair] == [5, 5]


async def test_a_pod_that_found_no_place_counts_nowhere(clock: Clock, pair: Pair) -> None:
    first, _second = pair
    for target in pair:
        target.answer = rejects

    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("a", labels={"app": "a"}, spec=apart("a"))
        await source.until_said("a", "no room here")
        first.answer = reserves
        began = clock.monotonic()
        source.add("b", labels={"app": "a"}, spec=apart("a") | only(first))
        await source.until_bound("b")
        assert clock.monotonic() - began < AT_ONCE


@pytest.mark.parametrize("lag", [0.0, 0.1], ids=["seen at once", "seen late"])
async def test_a_pod_that_was_bound_keeps_nobody_off_the_other_targets_it_asked(
    clock: Clock, pair: Pair, lag: float
) -> None:
    first, second = pair
    first.answer = is_silent
    source = SourceCluster(clock, *pair)
    source.server.fail(None, subresource="binding", after=True, delay=lag)
    async with source.running():
        source.add("a", labels={"app": "a"}, spec=apart("a"))
        await asyncio.sleep(1)
        source.add("b", labels={"app": "a"}, spec=apart("a") | only(first))
        await source.until_said("b", "didn't match pod anti-affinity rules")
        first.answer = reserves
        await source.until_bound("a")
        assert source.node_of("a") == second.node
        began = clock.monotonic()
        await source.until_bound("b")
        assert clock.monotonic() - began < AT_ONCE


# --- pods and targets that go meanwhile


async def test_for_a_pod_that_is_deleted_no_further_target_is_asked(
    clock: Clock, pair: Pair
) -> None:
    first, second = pair
    first.answer = is_silent
    source = SourceCluster(clock, *pair)
    async with source.running():
        source.add("p")
        await asyncio.sleep(1)
        await source.server.client("user").delete(kinds.PODS, "p", "default")
        await asyncio.sleep(100)
        assert (first.asked("create"), second.asked("create")) == (1, 0)
        assert source.bindings == []


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "ending"])
async def test_a_pod_that_is_deleted_keeps_nobody_off_its_target(clock: Clock, gone: bool) -> None:
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        for name in ("a", "b"):
            source.add(name, labels={"app": "a"}, spec=apart("a"), finalizers=[])

        await source.until_said("b", "didn't match pod anti-affinity rules")
        target.answer = reserves
        await asyncio.sleep(5)  # longer than the back-off
        began = clock.monotonic()
        if gone:
            source.remove("a")
        else:
            source.change("a", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

        await source.until_bound("b")
        assert clock.monotonic() - began < AT_ONCE


async def test_a_pod_that_somebody_else_bound_meanwhile_is_left_alone(clock: Clock) -> None:
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await asyncio.sleep(1)
        source.change("p", spec={"nodeName": "elsewhere"})
        await asyncio.sleep(1)
        reserves(target, target.candidate("p"))
        await asyncio.sleep(100)
        assert source.bindings == []


async def test_when_the_link_of_a_silent_target_goes_its_pods_are_told(clock: Clock) -> None:
    target = Target("c2", clock, is_silent)
    other = Target("c3", clock, rejects)
    prefer(other, target)
    source = SourceCluster(clock, target, other)
    async with source.running():
        source.add("p")
        await asyncio.sleep(1)
        source.links.remove(target.link)
        began = clock.monotonic()
        await source.until_said("p", "no room here")
        assert clock.monotonic() - began < AT_ONCE


# --- after a restart


async def test_a_new_leader_binds_a_pod_to_the_place_that_was_reserved_for_it(
    clock: Clock, pair: Pair
) -> None:
    _first, second = pair
    source = SourceCluster(clock, *pair)
    store(second, source.add("p"), allowed=False)
    async with source.running():
        await source.until_bound("p")
        assert source.node_of("p") == second.node
        assert source.renewed == [("p", second.node)]
        assert [target.asked("create") for target in pair] == [0, 0]


@pytest.mark.parametrize("healthy", [True, False])
async def test_a_candidate_that_may_run_already_is_the_only_one(
    clock: Clock, pair: Pair, healthy: bool
) -> None:
    """Its binding is on its way to us, or was undone; while its target is away nobody else is."""
    first, second = pair
    source = SourceCluster(clock, *pair)
    store(second, source.add("p"), allowed=True)
    second.set_healthy(healthy)
    async with source.running():
        await asyncio.sleep(100)
        assert source.node_of("p") == (second.node if healthy else "")
        assert first.asked("create") == 0
        second.set_healthy(True)
        await source.until_bound("p")
        assert source.node_of("p") == second.node


async def test_a_place_is_none_once_its_candidate_is_being_deleted(clock: Clock) -> None:
    target = Target("c2", clock, is_silent)
    source = SourceCluster(clock, target)
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    store(target, source.add("p"), allowed=False, annotations={keys.IS_RESERVED: "true"}, **ending)
    async with source.running():
        await source.until_said("p", "the candidate there is being deleted")
        await asyncio.sleep(100)
        assert source.bindings == []
        target.answer = reserves
        target.remove(target.candidate("p"))
        await source.until_bound("p")
        assert len(target.created_at) == 2


async def test_a_pod_waits_for_the_end_of_a_candidate_that_was_deleted_here(clock: Clock) -> None:
    target = Target("c2", clock, rejects)
    source = SourceCluster(clock, target)
    async with source.running():
        source.add("p")
        await source.until_said("p", "no room here")
        target.lets_go = False
        source.cordon(target)
        source.change("p", metadata={"labels": {"changed": "by its user"}})
        await source.until_said("p", "(cordoned)")
        source.cordon(target, False)
        await source.until_said("p", "the candidate there is being deleted")
        target.answer = reserves
        ended = clock.monotonic()
        target.remove(target.candidate("p"))
        await source.until_bound("p")
        assert clock.monotonic() - ended < MAX_BACKOFF + AT_ONCE
