"""Whatever happens in whatever order, no pod is lost, popped twice, or left asleep for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.scheduling.builders import ManualClock, pod
from vnode.scheduling import queued_pod
from vnode.scheduling.events import ClusterEvent, ClusterEventWithHint, EventKind
from vnode.scheduling.queue import SchedulingQueue

UIDS = st.sampled_from([f"p{number}" for number in range(6)])
NODES = st.sampled_from(["a", "b"])
PLUGINS = {"Fit": EventKind.TARGET_FREE, "Health": EventKind.TARGET_HEALTH}
REJECTIONS = st.dictionaries(NODES, st.sampled_from(sorted(PLUGINS)), min_size=1)
EVENTS = st.builds(ClusterEvent, st.sampled_from(list(PLUGINS.values())), NODES)


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.queue = SchedulingQueue(
            self.clock,
            lambda queued: (-queued.priority, queued.added),
            {name: frozenset({ClusterEventWithHint(kind)}) for name, kind in PLUGINS.items()},
        )
        self.known: set[str] = set()
        # In flight -> the events since it was popped.
        self.flying: dict[str, list[ClusterEvent]] = {}
        # Asleep with nothing having happened that helps -> (rejections, when it is due anyway).
        self.asleep: dict[str, tuple[dict[str, str], float]] = {}

    def pop_ready(self) -> str | None:
        """Return what `pop` returns without sleeping."""
        self.queue._wake_due()
        if not self.queue.statistics()[queued_pod.ACTIVE]:
            return None

        step = self.queue.pop()
        try:
            step.send(None)
        except StopIteration as returned:
            return str(returned.value.uid)

        raise AssertionError("pop slept although a pod was active")

    @rule(uid=UIDS, priority=st.integers(0, 2))
    def add(self, uid: str, priority: int) -> None:
        self.queue.add(pod(uid, priority=priority))
        self.known.add(uid)
        self.asleep.pop(uid, None)

    @rule(uid=UIDS)
    def delete(self, uid: str) -> None:
        self.queue.delete(uid)
        self.known.discard(uid)
        self.flying.pop(uid, None)
        self.asleep.pop(uid, None)

    @rule()
    def pop(self) -> None:
        uid = self.pop_ready()
        if uid is not None:
            assert uid in self.known
            assert uid not in self.flying
            self.flying[uid] = []
            self.asleep.pop(uid, None)

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), rejections=REJECTIONS)
    def reject(self, data: Any, rejections: dict[str, str]) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        seen = self.flying.pop(uid)
        self.queue.reject(uid, {node: frozenset({p}) for node, p in rejections.items()})
        if any(helps(event, rejections) for event in seen):
            assert self.queue.place(uid) == queued_pod.BACKOFF
        elif self.queue.place(uid) == queued_pod.UNSCHEDULABLE:
            self.asleep[uid] = rejections, self.clock.seconds + 60

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), succeeded=st.booleans())
    def finish(self, data: Any, succeeded: bool) -> None:
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        del self.flying[uid]
        if succeeded:
            self.queue.done(uid)
            self.known.discard(uid)
        else:
            self.queue.retry(uid)

    @rule(event=EVENTS)
    def move(self, event: ClusterEvent) -> None:
        self.queue.move(event)
        for events in self.flying.values():
            events.append(event)

        for uid, (rejections, _) in list(self.asleep.items()):
            woken = self.queue.place(uid) != queued_pod.UNSCHEDULABLE
            assert woken == helps(event, rejections)
            if woken:
                del self.asleep[uid]

    @rule(seconds=st.sampled_from([0.5, 1.0, 10.0, 59.5]))
    def wait(self, seconds: float) -> None:
        self.clock.seconds += seconds
        self.queue._wake_due()
        for uid, (_, due) in list(self.asleep.items()):
            if due <= self.clock.seconds:
                assert self.queue.place(uid) == queued_pod.ACTIVE
                del self.asleep[uid]

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        counts = self.queue.statistics()
        assert len(self.queue) == len(self.known) == sum(counts.values())
        assert counts[queued_pod.IN_FLIGHT] == len(self.flying)
        assert all(uid in self.queue for uid in self.known)
        for uid in self.asleep:
            assert self.queue.place(uid) == queued_pod.UNSCHEDULABLE

    def teardown(self) -> None:
        """Assert that in the end every pod is tried again, without a single further event."""
        for uid in list(self.flying):
            self.queue.retry(uid)

        self.clock.seconds += 61
        popped = set()
        while (ready := self.pop_ready()) is not None:
            popped.add(ready)

        assert popped == self.known


def helps(event: ClusterEvent, rejections: dict[str, str]) -> bool:
    return any(
        event.node == node and PLUGINS[plugin] is event.kind for node, plugin in rejections.items()
    )


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


async def test_pop_can_be_cancelled_without_losing_a_pod() -> None:
    queue = SchedulingQueue(ManualClock(), lambda queued: (queued.added,), {})
    sleeping = asyncio.ensure_future(queue.pop())
    await asyncio.sleep(0)
    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)
    queue.add(pod("p"))
    assert (await queue.pop()).uid == "p"
