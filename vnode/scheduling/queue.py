"""Queues the pods to schedule, and decides when each is tried (again).

    add ---> active ---pop---> in flight ---done---> gone
               ^  ^               |  |
               |  '--back-off <---'  '--reject--> unschedulable
               |       ^                               |
               '-------'--------- move, flush ---------'

A rejected pod waits for an event that may help it: one of a kind that a plugin which rejected it
registered for, on the node where it did. An event that comes while the pod is in flight counts as
well, for the attempt may not have seen it. A pod tried n times waits at least min(2^(n-1), 10)
seconds from its last failure (kube-scheduler's figures); one that is unschedulable for longer than
a minute is tried anyway. Held pods (rejected by PreEnqueue) wait for an update of themselves, or
for `release`.

Who has failed goes behind those that came meanwhile, and namespaces take turns (`active_pods`). A
namespace whose failing pods take too much time has a longer back-off (`retry_budget`). An event may
help thousands, and thousands may be due at one moment: so few are woken at once, and the others as
pods are popped.

Everything is synchronous but `pop`, which waits until a pod is ready; there is no polling.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.scheduling import unschedulable_pods
from vnode.scheduling.active_pods import ActivePods, SortKey
from vnode.scheduling.events import ClusterEvent, ClusterEventWithHint
from vnode.scheduling.queued_pod import (
    ACTIVE,
    BACKOFF,
    HELD,
    IN_FLIGHT,
    UNSCHEDULABLE,
    QueuedPod,
    Timers,
    concerns_scheduling,
)
from vnode.scheduling.retry_budget import RetryBudget
from vnode.scheduling.status import SUCCESS, Status
from vnode.scheduling.unschedulable_pods import Rejections, UnschedulablePods
from vnode.telemetry import turn_waits

INITIAL_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 10.0
MAX_UNSCHEDULABLE: Final = 60.0
AT_ONCE: Final = 500
"""Pods that are woken in one step: 8 ms where 10,000 wait, of which all at once took 42."""


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Times in seconds; the defaults are kube-scheduler's, and Admiralty's for the last."""

    initial_backoff: float = INITIAL_BACKOFF
    max_backoff: float = MAX_BACKOFF
    max_unschedulable: float = MAX_UNSCHEDULABLE


class SchedulingQueue:
    """Holds pods by UID: one created anew under its old name is another pod."""

    def __init__(
        self,
        clock: Clock,
        sort_key: SortKey,
        registrations: Mapping[str, frozenset[ClusterEventWithHint]],
        *,
        pre_enqueue: Callable[[Object], Status] = lambda _: SUCCESS,
        settings: QueueSettings | None = None,
    ) -> None:
        """Take plugin -> events that may undo its rejections; for others, all events may."""
        self._clock = clock
        self._pre_enqueue = pre_enqueue
        self._settings = settings or QueueSettings()
        # All pods of the queue, wherever they are.
        self._pods: dict[str, QueuedPod] = {}
        self._active = ActivePods(sort_key)
        self._retries = RetryBudget()
        self._waits = turn_waits.of("scheduling")
        self._retry_waits = turn_waits.of("scheduling retries")
        # Exactly the pods in back-off, and stale entries.
        self._backoff = Timers()
        # When unschedulable pods are tried without an event, and stale entries.
        self._flush = Timers()
        # Exactly the unschedulable pods.
        self._unschedulable = UnschedulablePods(registrations)
        # UIDs of unschedulable pods that an event may help, in their order; some have moved on.
        self._helped: OrderedDict[str, None] = OrderedDict()
        # Events are numbered from 1. The number of the newest of each that came while a pod was
        # in flight; cleared when none is.
        self._event_number = 0
        self._newest: dict[ClusterEvent, int] = {}
        self._in_flight: set[str] = set()
        # Set when a change may make a pod ready, for a waiting `pop`.
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def statistics(self) -> dict[str, int]:
        """Count the pods in each place."""
        counts = dict.fromkeys((ACTIVE, BACKOFF, UNSCHEDULABLE, HELD, IN_FLIGHT), 0)
        for queued in self._pods.values():
            counts[queued.place] += 1

        return counts

    def pod(self, uid: str) -> Object | None:
        """Return the pod as the queue knows it; None if it is not in the queue."""
        queued = self._pods.get(uid)
        return queued.pod if queued else None

    def place(self, uid: str) -> str | None:
        """Return where the pod is; None if it is not in the queue."""
        queued = self._pods.get(uid)
        return queued.place if queued else None

    def add(self, pod: Object) -> None:
        """Add a pod to schedule, or take its newer version.

        A change of its spec, labels or annotations gives a rejected pod another attempt; a change
        of its status does not.
        """
        uid = objects.uid(pod)
        queued = self._pods.get(uid)
        if queued is None:
            now = self._clock.monotonic()
            queued = QueuedPod(pod, uid, objects.priority(pod), now, since=now)
            self._pods[uid] = queued
            self._enqueue(queued)
            return

        relevant = concerns_scheduling(queued.pod, pod)
        queued.pod = pod
        if not relevant:
            return

        queued.priority = objects.priority(pod)
        if queued.place == IN_FLIGHT:
            queued.changed = True
        elif queued.place in (BACKOFF, UNSCHEDULABLE):
            self._enqueue_after_backoff(queued)
        else:
            self._enqueue(queued)

    def delete(self, uid: str) -> None:
        """Drop a pod that is gone or no longer to be scheduled. Unknown ones are fine."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._leave(queued)

    async def pop(self) -> QueuedPod:
        """Wait for the next pod, from then on in flight: end with `done`, `reject` or `retry`."""
        while True:
            self._wake_due()
            if queued := self._pop_active():
                return queued

            self._changed.clear()
            await self._sleep()

    def pay(self, queued: QueuedPod, seconds: float) -> None:
        """Note how long the scheduling cycle of a pod in flight has taken."""
        queued.cycle_seconds = seconds
        self._active.pay(queued.namespace, seconds)

    def done(self, uid: str) -> None:
        """Drop the pod in flight, which has its node."""
        self.delete(uid)

    def reject(self, uid: str, rejections: Rejections, retry_at: float = math.inf) -> None:
        """Put the pod in flight aside until an event may help it to a node, or until `retry_at`.

        If one came, or the pod was changed, since it was popped, it is tried again after its
        back-off, which ends at `retry_at` at the latest. A pod deleted meanwhile is ignored.
        """
        queued = self._pods.get(uid)
        if queued is None or queued.place != IN_FLIGHT:
            return

        rejected = unschedulable_pods.signature(rejections)
        missed = queued.changed or any(
            number > queued.seen_event
            and event.concerns(queued.namespace)
            and self._unschedulable.wakes(event, rejected, queued.namespace)
            for event, number in self._newest.items()
        )
        self._fail(queued, retry_at)
        if missed:
            self._enqueue_after_backoff(queued)
            return

        self._put(queued, UNSCHEDULABLE)
        self._unschedulable.add(queued.pod, rejected)
        flush_at = self._clock.monotonic() + self._settings.max_unschedulable
        due = min(flush_at, max(retry_at, self._soonest()))
        self._flush.push(max(due, queued.ready_at), queued)
        self._changed.set()

    def retry(self, uid: str) -> None:
        """Try the pod in flight again after its back-off: the attempt failed with an error."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place == IN_FLIGHT:
            self._fail(queued)
            self._enqueue_after_backoff(queued)

    def activate(self, uid: str) -> None:
        """Try this pod as soon as possible, whatever it waits for; not a held one."""
        queued = self._pods.get(uid)
        if queued is None:
            return

        if queued.place == IN_FLIGHT:
            queued.changed = True
        elif queued.place in (BACKOFF, UNSCHEDULABLE):
            self._enqueue(queued)

    def release(self, uid: str) -> None:
        """Ask PreEnqueue plugins again about a held pod: what they waited for may be there."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place == HELD:
            self._enqueue(queued)

    def soon(self, uid: str) -> None:
        """Let the back-off of a pod in flight be a first one: its attempt has cost nobody."""
        queued = self._pods.get(uid)
        if queued is not None:
            queued.attempts = min(queued.attempts, 1)

    def hold(self, uid: str) -> None:
        """Hold the pod in flight until it is released: it was not tried."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place == IN_FLIGHT:
            queued.attempts -= 1
            self._put(queued, HELD)

    def requeue(self, uid: str) -> None:
        """Try this pod again after its back-off, whatever it waits for; not a held one."""
        queued = self._pods.get(uid)
        if queued is None:
            return

        if queued.place == IN_FLIGHT:
            queued.changed = True
        elif queued.place == UNSCHEDULABLE:
            self._enqueue_after_backoff(queued)

    def move(self, event: ClusterEvent, by: str = "") -> None:
        """Wake the pods that the event may help, but not the one with the UID `by`."""
        if self._in_flight:
            self._event_number += 1
            self._newest[event] = self._event_number

        self._helped.update((uid, None) for uid in self._unschedulable.woken_by(event) if uid != by)
        self._wake_helped()

    def _wake_helped(self) -> None:
        for _ in range(min(len(self._helped), AT_ONCE)):
            queued = self._pods.get(self._helped.popitem(last=False)[0])
            if queued is not None and queued.place == UNSCHEDULABLE:
                self._enqueue_after_backoff(queued)

    def _enqueue(self, queued: QueuedPod) -> None:
        """Put the pod into the active queue, or hold it."""
        if not self._pre_enqueue(queued.pod).is_success:
            self._put(queued, HELD)
            return

        self._put(queued, ACTIVE)
        queued.active_since = self._clock.monotonic()
        self._active.push(queued)
        self._changed.set()

    def _enqueue_after_backoff(self, queued: QueuedPod) -> None:
        if queued.ready_at <= self._clock.monotonic():
            self._enqueue(queued)
            return

        self._put(queued, BACKOFF)
        self._backoff.push(queued.ready_at, queued)
        self._changed.set()

    def _put(self, queued: QueuedPod, place: str) -> None:
        self._leave(queued)
        queued.place = place

    def _leave(self, queued: QueuedPod) -> None:
        """Take the pod out of where it is; its heap entries are stale from now on."""
        queued.generation += 1
        if queued.place == IN_FLIGHT:
            self._in_flight.discard(queued.uid)
            if not self._in_flight:
                self._newest.clear()

        elif queued.place == UNSCHEDULABLE:
            self._unschedulable.remove(queued.uid)

    def _fail(self, queued: QueuedPod, retry_at: float = math.inf) -> None:
        settings = self._settings
        exponent = min(max(queued.attempts - 1, 0), 32)
        backoff = min(settings.initial_backoff * 2**exponent, settings.max_backoff)
        now = queued.since = self._clock.monotonic()
        ready_at = min(now + backoff, max(retry_at, self._soonest()))
        slowed = self._retries.wait(queued, now)
        queued.ready_at = max(ready_at, now + slowed)
        self._retry_waits.note(queued.namespace, queued.ready_at - ready_at)

    def _soonest(self) -> float:
        """Return when a pod that has just failed is tried again at the earliest."""
        return self._clock.monotonic() + self._settings.initial_backoff

    def _wake_due(self) -> None:
        self._wake_helped()
        now = self._clock.monotonic()
        for timers in (self._backoff, self._flush):
            for queued in timers.pop_due(now, AT_ONCE):
                self._enqueue(queued)

    def _pop_active(self) -> QueuedPod | None:
        queued = self._active.pop()
        if queued is not None:
            self._waits.note(queued.namespace, self._clock.monotonic() - queued.active_since)
            self._put(queued, IN_FLIGHT)
            queued.attempts += 1
            queued.cycle_seconds, queued.remade = 0.0, 0
            queued.seen_event = self._event_number
            queued.changed = False
            self._in_flight.add(queued.uid)

        return queued

    async def _sleep(self) -> None:
        """Wait until something changes, or the next pod is due."""
        if self._helped:
            await asyncio.sleep(0)  # others have their turn, and then the next of them
            return

        timers = (self._backoff, self._flush)
        moments = [m for t in timers if (m := t.next_moment()) is not None]
        if not moments:
            await self._changed.wait()
            return

        delay = max(TICK, min(moments) - self._clock.monotonic())
        async with asyncio.TaskGroup() as group:
            timer = group.create_task(self._wake_after(delay), name="scheduling queue timer")
            await self._changed.wait()
            timer.cancel()

    async def _wake_after(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._changed.set()
