from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.scheduling.builders import ManualClock, pod
from vnode.api import objects
from vnode.api.clock import SystemClock
from vnode.scheduling import queued_pod, status
from vnode.scheduling.events import ClusterEvent, ClusterEventWithHint, EventKind
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.status import SUCCESS, Status

REGISTRATIONS = {
    "Fit": frozenset({ClusterEventWithHint(EventKind.TARGET_FREE)}),
    "Spread": frozenset({ClusterEventWithHint(EventKind.POD_ADD, anywhere=True)}),
}
FULL = {"a": frozenset({"Fit"}), "b": frozenset({"Fit"})}


def by_priority(queued: QueuedPod) -> tuple[Any, ...]:
    return -queued.priority, queued.added


def ungated(pod: dict[str, Any]) -> Status:
    return status.unresolvable("gated") if objects.spec(pod).get("schedulingGates") else SUCCESS


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(clock: ManualClock) -> SchedulingQueue:
    return SchedulingQueue(clock, by_priority, REGISTRATIONS, pre_enqueue=ungated)


async def pop(queue: SchedulingQueue) -> str:
    return (await queue.pop()).uid


async def rejected(queue: SchedulingQueue, uid: str = "p", **rejections: frozenset[str]) -> None:
    queue.add(pod(uid))
    assert await pop(queue) == uid
    queue.reject(uid, rejections or FULL)


async def test_the_higher_priority_comes_first_and_then_the_older(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("old"))
    clock.seconds = 1
    queue.add(pod("new"))
    queue.add(pod("high", priority=10))
    assert [await pop(queue) for _ in range(3)] == ["high", "old", "new"]
    assert queue.statistics()[queued_pod.IN_FLIGHT] == 3


async def test_a_changed_priority_reorders(queue: SchedulingQueue) -> None:
    queue.add(pod("a"))
    queue.add(pod("b"))
    queue.add(pod("b", priority=1))
    assert await pop(queue) == "b"
    assert await pop(queue) == "a"


async def test_an_event_wakes_only_those_whose_rejecting_plugin_registered_for_it(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    await rejected(queue, "full", a=frozenset({"Fit"}))
    await rejected(queue, "skewed", a=frozenset({"Spread"}))
    clock.seconds = 5
    queue.move(ClusterEvent(EventKind.TARGET_FREE, "b"))
    queue.move(ClusterEvent(EventKind.TARGET_HEALTH, "a"))
    assert queue.statistics()[queued_pod.UNSCHEDULABLE] == 2
    queue.move(ClusterEvent(EventKind.TARGET_FREE, "a"))
    assert queue.place("full") == queued_pod.ACTIVE
    assert queue.place("skewed") == queued_pod.UNSCHEDULABLE
    queue.move(ClusterEvent(EventKind.POD_ADD, "elsewhere"))
    assert queue.place("skewed") == queued_pod.ACTIVE


async def test_a_new_node_wakes_everybody_who_has_not_been_tried_there(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    await rejected(queue)
    clock.seconds = 5
    queue.move(ClusterEvent(EventKind.NODE_ADD, "a"))
    assert queue.place("p") == queued_pod.UNSCHEDULABLE
    queue.move(ClusterEvent(EventKind.NODE_ADD, "c"))
    assert queue.place("p") == queued_pod.ACTIVE


async def test_a_node_of_another_namespace_wakes_only_who_counts_what_is_anywhere(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    await rejected(queue)
    await rejected(queue, "nowhere", none=frozenset())
    await rejected(queue, "skewed", a=frozenset({"Spread"}))
    await rejected(queue, "q", a=frozenset({"Stranger"}))
    clock.seconds = 5
    queue.move(ClusterEvent(EventKind.NODE_ADD, "c", home="other"))
    queue.move(ClusterEvent(EventKind.TARGET_FREE, "a", home="other"))
    assert [queue.place(uid) for uid in ("p", "nowhere", "skewed")] == ["unschedulable"] * 3
    assert queue.place("q") == queued_pod.ACTIVE
    queue.move(ClusterEvent(EventKind.POD_ADD, "c", home="other"))
    assert queue.place("skewed") == queued_pod.ACTIVE
    queue.move(ClusterEvent(EventKind.NODE_ADD, "c", home="default"))
    assert [queue.place(uid) for uid in ("p", "nowhere")] == [queued_pod.ACTIVE] * 2


async def test_a_node_of_another_namespace_that_comes_during_the_attempt_is_nothing_missed(
    queue: SchedulingQueue,
) -> None:
    outcomes = (("other", queued_pod.UNSCHEDULABLE), ("default", queued_pod.BACKOFF))
    for home, place in outcomes:
        queue.add(pod(home))
        assert await pop(queue) == home
        queue.move(ClusterEvent(EventKind.NODE_ADD, "c", home=home))
        queue.reject(home, FULL)
        assert queue.place(home) == place


async def test_without_any_node_or_with_an_unknown_plugin_every_event_wakes(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("p"))
    await queue.pop()
    queue.reject("p", {})
    await rejected(queue, "q", a=frozenset({"Stranger"}))
    clock.seconds = 5
    queue.move(ClusterEvent(EventKind.TARGET_CHANGED))
    assert queue.statistics()[queued_pod.ACTIVE] == 2


async def test_an_event_during_the_attempt_is_not_lost(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("p"))
    queue.add(pod("q"))
    assert await pop(queue) == "p"
    queue.move(ClusterEvent(EventKind.TARGET_FREE, "b"))
    assert await pop(queue) == "q"
    queue.reject("p", FULL)
    queue.reject("q", FULL)
    assert queue.place("p") == queued_pod.BACKOFF
    assert queue.place("q") == queued_pod.UNSCHEDULABLE


async def test_a_change_during_the_attempt_is_not_lost(queue: SchedulingQueue) -> None:
    queue.add(pod("p"))
    await queue.pop()
    queue.add(pod("p", labels={"new": "label"}))
    queue.reject("p", FULL)
    assert queue.place("p") == queued_pod.BACKOFF


async def test_a_new_status_is_no_reason_to_try_again(queue: SchedulingQueue) -> None:
    await rejected(queue)
    queue.add(pod("p", phase="Running"))
    assert queue.place("p") == queued_pod.UNSCHEDULABLE


async def test_back_off_doubles_from_one_to_ten_seconds(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("p"))
    for seconds in (1, 2, 4, 8, 10, 10):
        await queue.pop()
        queue.retry("p")
        clock.seconds += seconds - 0.001
        queue._wake_due()
        assert queue.place("p") == queued_pod.BACKOFF
        clock.seconds += 0.001


async def test_after_a_minute_an_unschedulable_pod_is_tried_anyway(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    await rejected(queue)
    clock.seconds = 60
    assert await pop(queue) == "p"


async def test_a_gated_pod_waits_for_its_own_update_only(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("p", schedulingGates=[{"name": "g"}]))
    clock.seconds = 100
    queue.move(ClusterEvent(EventKind.NODE_ADD, "a"))
    queue.activate("p")
    assert queue.place("p") == queued_pod.HELD
    queue.add(pod("p"))
    assert await pop(queue) == "p"


async def test_activate_ends_back_off_and_sleep(queue: SchedulingQueue) -> None:
    await rejected(queue)
    queue.activate("p")
    assert await pop(queue) == "p"
    queue.activate("p")
    queue.reject("p", FULL)
    assert queue.place("p") == queued_pod.BACKOFF
    queue.activate("p")
    assert await pop(queue) == "p"


async def test_a_pod_deleted_in_flight_does_not_come_back(queue: SchedulingQueue) -> None:
    queue.add(pod("p"))
    await queue.pop()
    queue.delete("p")
    queue.reject("p", FULL)
    queue.retry("p")
    queue.done("p")
    assert len(queue) == 0
    assert "p" not in queue


async def test_pop_sleeps_until_a_pod_is_added(queue: SchedulingQueue) -> None:
    async with asyncio.TaskGroup() as group:
        popped = group.create_task(queue.pop())
        await asyncio.sleep(0)
        assert not popped.done()
        queue.add(pod("p"))

    assert popped.result().uid == "p"


async def test_a_requeued_pod_is_tried_after_its_back_off() -> None:
    clock = ManualClock()
    queue = SchedulingQueue(clock, by_priority, REGISTRATIONS)
    queue.add(pod("p"))
    await queue.pop()
    queue.reject("p", FULL)
    queue.requeue("p")
    assert queue.place("p") == "backoff"
    clock.seconds = 1.0
    assert (await queue.pop()).uid == "p"
    queue.requeue("p")
    queue.reject("p", FULL)
    assert queue.place("p") == "backoff"
    queue.requeue("unknown")


@pytest.mark.looptime
async def test_pop_sleeps_until_a_back_off_ends() -> None:
    queue = SchedulingQueue(LoopClock(), by_priority, REGISTRATIONS)
    queue.add(pod("p"))
    await queue.pop()
    queue.retry("p")
    started = asyncio.get_running_loop().time()
    assert (await queue.pop()).attempts == 2
    assert asyncio.get_running_loop().time() - started == pytest.approx(1.0)


@pytest.mark.looptime
async def test_a_pod_added_meanwhile_is_not_kept_waiting_by_the_timer() -> None:
    queue = SchedulingQueue(LoopClock(), by_priority, REGISTRATIONS)
    queue.add(pod("p"))
    await queue.pop()
    queue.reject("p", FULL)
    async with asyncio.TaskGroup() as group:
        popped = group.create_task(queue.pop())
        await asyncio.sleep(0.5)
        queue.add(pod("q"))
        assert (await popped).uid == "q"
        assert asyncio.get_running_loop().time() == pytest.approx(0.5)


class LoopClock(SystemClock):
    """Follows the event loop's time, which looptime moves."""

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


async def test_a_rejected_pod_may_name_the_moment_at_which_it_is_tried_again(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("p"))
    assert await pop(queue) == "p"
    queue.reject("p", FULL, 7.0)
    clock.seconds = 6.9
    queue.add(pod("other"))
    assert await pop(queue) == "other"
    clock.seconds = 7.0
    assert await pop(queue) == "p"


@pytest.mark.parametrize("is_woken", [True, False])
async def test_that_moment_ends_a_longer_back_off(
    queue: SchedulingQueue, clock: ManualClock, is_woken: bool
) -> None:
    """A pod that overflows is due at its threshold, however often events had it tried before."""
    queue.add(pod("p"))
    for _attempt in range(5):
        assert await pop(queue) == "p"
        queue.retry("p")
        clock.seconds += 10

    assert await pop(queue) == "p"
    due = clock.seconds + 2
    queue.reject("p", FULL, due)
    if is_woken:
        queue.requeue("p")

    clock.seconds = due - 0.1
    queue.add(pod("other"))
    assert await pop(queue) == "other"
    clock.seconds = due
    assert await pop(queue) == "p"


async def test_a_rejected_pod_is_not_tried_again_before_a_first_back_off(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("p"))
    assert await pop(queue) == "p"
    queue.reject("p", FULL, 0.0)
    clock.seconds = 0.9
    queue.add(pod("other"))
    assert await pop(queue) == "other"
    clock.seconds = 1.0
    assert await pop(queue) == "p"


def test_places_are_label_values_that_need_no_quotes(queue: SchedulingQueue) -> None:
    """`vnode_pending_pods` has them as its label `queue`."""
    assert all(place.isidentifier() for place in queue.statistics())
