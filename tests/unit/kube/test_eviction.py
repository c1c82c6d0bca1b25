"""Pods are evicted at a rate; whom that has reached, and whom a budget has kept, is remembered."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound, TooManyRequests, Unreachable, VnodeError
from vnode.api.objects import Object
from vnode.kube.eviction import RETRY_AFTER, Evictor

pytestmark = pytest.mark.looptime


class EvictedPods:
    """A server with pods, and an evictor of these."""

    def __init__(self, clock: Clock, *, burst: int = 1) -> None:
        self.server = APIServer("c1", clock)
        self.server.add(kinds.NAMESPACES, {"metadata": {"name": "ns"}})
        self.evictor: Evictor[str] = Evictor(self.server.client(), clock, burst=burst)

    def add(self, name: str) -> Object:
        return self.server.add(kinds.PODS, {"metadata": {"name": name, "namespace": "ns"}})

    def refuse(self, error: VnodeError) -> None:
        self.server.fail(error, verb="create", kind=kinds.PODS, times=1)


async def test_a_pod_is_ending_from_its_eviction_until_the_store_has_seen_its_end(
    clock: Clock,
) -> None:
    pods = EvictedPods(clock)
    pod = pods.add("a")
    assert await pods.evictor.evict(pod) is None
    assert pods.evictor.is_ending(pod)
    assert pods.server.find(kinds.PODS, "a", "ns") is None
    pods.evictor.on_pod(pod, pod)
    assert pods.evictor.is_ending(pod)
    pods.evictor.on_pod(pod, None)
    assert not pods.evictor.is_ending(pod)


async def test_a_terminating_pod_is_ending(clock: Clock) -> None:
    pods = EvictedPods(clock)
    pod = pods.add("a")
    assert not pods.evictor.is_ending(pod)
    assert pods.evictor.is_ending(objects.merge_patches(pod, TERMINATING))


async def test_a_refused_pod_is_left_alone_for_as_long_as_the_server_says(clock: Clock) -> None:
    pods = EvictedPods(clock)
    pod, other = pods.add("a"), pods.add("b")
    budget = TooManyRequests(429, "TooManyRequests", "disruption budget")
    budget.retry_after = RETRY_AFTER + 7.0
    pods.refuse(budget)
    assert await pods.evictor.evict(pod) is budget
    assert not pods.evictor.is_ending(pod)
    assert pods.evictor.retry_in(other) == 0.0
    await asyncio.sleep(RETRY_AFTER)
    assert pods.evictor.retry_in(pod) == pytest.approx(7.0)
    await asyncio.sleep(7.0)
    assert pods.evictor.retry_in(pod) == 0.0


async def test_a_refused_pod_that_ends_is_forgotten(clock: Clock) -> None:
    pods = EvictedPods(clock)
    pod = pods.add("a")
    pods.refuse(NotFound(404, "NotFound", "gone"))
    assert isinstance(await pods.evictor.evict(pod), NotFound)
    assert pods.evictor.retry_in(pod) > 0.0
    pods.evictor.on_pod(pod, objects.merge_patches(pod, TERMINATING))
    assert pods.evictor.retry_in(pod) == 0.0


async def test_a_server_that_does_not_answer_has_refused_nothing(clock: Clock) -> None:
    pods = EvictedPods(clock)
    pod = pods.add("a")
    pods.refuse(Unreachable("no answer"))
    with pytest.raises(Unreachable):
        await pods.evictor.evict(pod)

    assert not pods.evictor.is_ending(pod)
    assert pods.evictor.retry_in(pod) == 0.0


async def test_each_key_has_its_rate_after_its_burst(clock: Clock) -> None:
    evictor = EvictedPods(clock, burst=2).evictor
    assert [evictor.turn("a", 6), evictor.turn("a", 6)] == [0.0, 0.0]
    assert evictor.wait("b", 6) == 0.0
    assert evictor.turn("a", 6) == evictor.wait("a", 6) == pytest.approx(10.0)
    assert evictor.turn("b", 6) == 0.0
    await asyncio.sleep(10.0)
    assert evictor.turn("a", 6) == 0.0


async def test_a_pod_of_a_lost_node_is_deleted_with_the_condition_that_says_so(
    clock: Clock,
) -> None:
    pods = EvictedPods(clock)
    pod = pods.server.add(
        kinds.PODS,
        {
            "metadata": {"name": "a", "namespace": "ns", "finalizers": ["example.com/kept"]},
            "spec": {"nodeName": "n"},
        },
    )
    await pods.evictor.delete(pod, "Lost", "the node is lost")
    after = pods.server.find(kinds.PODS, "a", "ns")
    assert after is not None
    assert objects.is_terminating(after)
    assert objects.is_condition_true(after, "DisruptionTarget")
    assert pods.evictor.is_ending(pod)


TERMINATING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
