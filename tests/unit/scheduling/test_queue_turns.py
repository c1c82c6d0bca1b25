"""Nobody's pods wait for those of another namespace, however many fail there."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from scheduler_plugins.priority_sort import PrioritySort
from tests.permitted import any_namespace
from tests.unit.conftest import LoopClock
from tests.unit.scheduling.builders import ManualClock, pod
from vnode.scheduling import queued_pod, retry_budget
from vnode.scheduling.events import ClusterEvent, ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import Handle, NoArgs
from vnode.scheduling.queue import AT_ONCE, MAX_UNSCHEDULABLE, SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod

REGISTRATIONS = {"Fit": frozenset({ClusterEventWithHint(EventKind.TARGET_FREE)})}
FULL = {"a": frozenset({"Fit"})}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(clock: ManualClock) -> SchedulingQueue:
    sort = PrioritySort(NoArgs(), Handle(namespace_refusal=any_namespace))
    return SchedulingQueue(clock, sort.sort_key, REGISTRATIONS)


def add(queue: SchedulingQueue, namespace: str, number: int, **spec: Any) -> None:
    for index in range(number):
        queue.add(pod(f"{namespace}-{index}", namespace=namespace, **spec))


async def cycle(queue: SchedulingQueue, clock: ManualClock, seconds: float) -> QueuedPod:
    queued = await queue.pop()
    clock.seconds += seconds
    queue.pay(queued, seconds)
    return queued


async def fail_all(queue: SchedulingQueue, clock: ManualClock, seconds: float) -> None:
    """Try all active pods once, in vain."""
    for _ in range(queue.statistics()[queued_pod.ACTIVE]):
        queued = await cycle(queue, clock, seconds)
        queue.reject(queued.uid, FULL)


async def wait_in_vain(queue: SchedulingQueue, clock: ManualClock, seconds: float) -> None:
    """Have 2,000 pods fail, and let so many seconds pass."""
    add(queue, "crowd", 2000)
    await fail_all(queue, clock, 0.005)
    clock.seconds += seconds


async def test_a_pod_that_failed_goes_behind_those_that_came_meanwhile(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    queue.add(pod("old"))
    clock.seconds = 1
    assert (await queue.pop()).uid == "old"
    queue.reject("old", FULL)
    clock.seconds = 2
    queue.add(pod("new"))
    clock.seconds = 3
    queue.move(ClusterEvent(EventKind.TARGET_FREE, "a"))
    assert [(await queue.pop()).uid for _ in range(2)] == ["old", "new"]
    queue.retry("old")
    queue.add(pod("newer"))
    clock.seconds = 60
    assert [(await queue.pop()).uid for _ in range(2)] == ["newer", "old"]


async def test_a_new_pod_is_next_though_another_namespace_has_thousands_of_old_ones(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    await wait_in_vain(queue, clock, 100)
    assert (await cycle(queue, clock, 0.005)).namespace == "crowd"
    queue.add(pod("p", namespace="quiet"))
    assert (await queue.pop()).uid == "p"


async def test_of_thousands_that_an_event_helps_a_few_are_woken_in_one_step(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    await wait_in_vain(queue, clock, 20)
    queue.move(ClusterEvent(EventKind.TARGET_FREE, "a"))
    assert queue.statistics()[queued_pod.ACTIVE] == AT_ONCE
    queue.delete("crowd-1999")
    tried = set[str]()
    for _ in range(1999):
        queued = await queue.pop()
        tried.add(queued.uid)
        queue.reject(queued.uid, FULL)

    assert len(tried) == 1999


async def test_of_thousands_that_are_due_a_few_are_woken_in_one_step(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    await wait_in_vain(queue, clock, 100)
    await queue.pop()
    assert queue.statistics()[queued_pod.ACTIVE] == AT_ONCE - 1
    assert len({(await queue.pop()).uid for _ in range(1999)}) == 1999


@pytest.mark.looptime
async def test_who_waits_for_a_pop_gets_those_that_were_not_woken_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vnode.scheduling.queue.AT_ONCE", 1)
    sort = PrioritySort(NoArgs(), Handle(namespace_refusal=any_namespace))
    queue = SchedulingQueue(LoopClock(), sort.sort_key, REGISTRATIONS)
    add(queue, "crowd", 3)
    for _ in range(3):
        queue.reject((await queue.pop()).uid, FULL)

    queue.move(ClusterEvent(EventKind.TARGET_FREE, "a"))
    assert queue.statistics()[queued_pod.BACKOFF] == 1
    assert len({(await queue.pop()).uid for _ in range(3)}) == 3
    assert asyncio.get_running_loop().time() < MAX_UNSCHEDULABLE  # at which they are tried anyway


async def test_namespaces_share_the_time_of_cycles_and_not_their_number(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    add(queue, "costly", 200)
    add(queue, "cheap", 200)
    taken = {"costly": 0.0, "cheap": 0.0}
    while taken["cheap"] < 0.1:
        queued = await queue.pop()
        seconds = 0.02 if queued.namespace == "costly" else 0.001
        queue.pay(queued, seconds)
        taken[queued.namespace] += seconds

    assert taken["costly"] <= taken["cheap"] + 0.02


async def test_a_priority_goes_first_but_does_not_keep_others_off(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    add(queue, "critical", 500, priority=2_000_000_000)
    queue.add(pod("p", namespace="quiet"))
    before = 0
    while (await cycle(queue, clock, 0.005)).uid != "p":
        before += 1

    assert 10 <= before <= 50


async def test_priorities_within_a_namespace_are_kept(queue: SchedulingQueue) -> None:
    add(queue, "team", 3)
    queue.add(pod("high", namespace="team", priority=1))
    add(queue, "other", 1)
    assert [(await queue.pop()).uid for _ in range(3)] == ["high", "other-0", "team-0"]


async def test_failing_pods_take_no_more_than_their_share_of_time(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    add(queue, "crowd", 500)
    busy = 0.0
    while clock.seconds < 2000:
        queue._wake_due()
        before = clock.seconds
        await fail_all(queue, clock, 0.02)
        busy += clock.seconds - before
        moments = [queue._backoff.next_moment(), queue._flush.next_moment()]
        clock.seconds = max(clock.seconds, min(m for m in moments if m is not None))

    share = (busy - retry_budget.BURST) / clock.seconds
    assert share <= retry_budget.SHARE * 1.1


async def test_who_fails_now_and_then_is_not_slowed(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    add(queue, "crowd", 1000)
    await fail_all(queue, clock, 0.02)
    assert "crowd" in queue._retry_waits.shown()
    add(queue, "quiet", 1)
    queued = await cycle(queue, clock, 0.02)
    queue.reject(queued.uid, FULL)
    assert queued.ready_at == clock.seconds + 1
    assert "quiet" not in queue._retry_waits.shown()


async def test_pods_that_find_a_node_are_never_slowed(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    add(queue, "burst", 1000)
    for _ in range(1000):
        queued = await cycle(queue, clock, 0.1)
        queue.done(queued.uid)

    add(queue, "burst", 1)
    queued = await cycle(queue, clock, 0.1)
    queue.reject(queued.uid, FULL, math.inf)
    assert queued.ready_at == clock.seconds + 1


async def test_whose_candidates_were_made_anew_in_vain_waits_longer_and_nobody_else(
    queue: SchedulingQueue, clock: ManualClock
) -> None:
    most = round(retry_budget.BURST / retry_budget.REMADE)
    add(queue, "changes", most)
    for _ in range(most):
        queued = await cycle(queue, clock, 0)
        queued.remade = 1
        queue.reject(queued.uid, FULL)

    add(queue, "changes", most + 1)
    add(queue, "quiet", 1)
    waits = {}
    for _ in range(2):
        queued = await cycle(queue, clock, 0)
        queued.remade = 100
        queue.reject(queued.uid, FULL)
        waits[queued.namespace] = queued.ready_at - clock.seconds

    assert waits == pytest.approx(
        {"changes": 100 * retry_budget.REMADE / retry_budget.SHARE, "quiet": 1}
    )
