"""Counts pods on the node they are on their way to, from the moment at which they may be sent.

Each check and the count that follows it happen in one step of the event loop. So of two pods that
must not meet, the second one's check sees the first, however long both then wait for their targets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from vnode.api import objects
from vnode.api.clock import Clock, happens_within
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.planning.policy import NO_POLICIES, Policies
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.status import SUCCESS, Status


class Assumptions:
    """Writes assumptions into the cache, and moves pods in the queue when one is withdrawn."""

    def __init__(
        self,
        framework: Framework,
        cache: Cache,
        queue: SchedulingQueue,
        clock: Clock,
        policies: Policies = NO_POLICIES,
    ) -> None:
        self._policies = policies
        self._framework = framework
        self._cache = cache
        self._queue = queue
        self._clock = clock
        self._awaited: float | None = None  # the next lapse that `run` knows of
        self._sooner = asyncio.Event()  # set when one is due before that

    async def run(self) -> None:
        """End promises whose time is over, and try pods again for what is left, until cancelled."""
        while True:
            now = self._clock.monotonic()
            for node in self._cache.lapse(now):
                self._queue.move(ClusterEvent(EventKind.TARGET_FREE, node))

            self._awaited = self._cache.next_lapse()
            self._sooner.clear()
            wait = None if self._awaited is None else self._awaited - now
            await happens_within(self._sooner, wait)

    @property
    def generation(self) -> int:
        """The number to pass to `assume` as `seen`, after a decision that was made now."""
        return self._cache.generation

    def assume(self, pod: Object, node: str, seen: int | None = None) -> Status:
        """Count the pod on the node, unless a Filter plugin rejects it by now.

        The plugins are not asked if nothing has changed since the cache's generation `seen`.
        """
        if seen != self._cache.generation:
            status = self._check(pod, node)
            if not status.is_success:
                return status

        self._assume(pod, node)
        return SUCCESS

    def promise(self, pods: Iterable[tuple[Object, Resources | None]], node: str) -> None:
        """Count pods on the node, for which the caller has found room there, before anybody looks.

        With each comes what it requests, if the caller knows that. There may be thousands, so they
        are counted in slices: `pods` is gone through in these, and each may look at what has
        changed since. See `whole`.
        """

        def steps() -> Iterator[None]:
            for pod, requests in pods:
                self._assume(pod, node, requests)
                yield

        self._cache.promising.begin(steps())

    async def whole(self) -> None:
        """Wait until all are counted to whom room was promised together, by limits of now."""
        await self._cache.promising.over(self._clock)
        await self._cache.quotas.recounting.over(self._clock)

    async def ready(self, pod: Object | None) -> None:
        """Wait until all is counted by which it is decided about a pod."""
        policy = self._policies.of(pod) if pod is not None and self._policies else None
        if pod is not None and policy is not None:
            await self._cache.workloads.count(pod, policy.group_by, self._clock)

        await self.whole()

    def confirm(self, pod: Object, node: str) -> Status:
        """Check again, and count a pod whose target has reserved its place."""
        status = self._check(pod, node)
        uid = objects.uid(pod)
        if status.is_success and not self._cache.has(uid, node):
            self._assume(pod, node)
            self._cache.quotas.settle(uid, node)

        return status

    def observe(self, uid: str, node: str) -> None:
        """Note that the target itself counts the pod, which has a node there."""
        self._cache.observe(uid, node, self._clock.monotonic())
        self._note_lapse()

    def forget(self, uid: str, node: str) -> None:
        """Withdraw an assumption, and try the pods again that it may have kept away.

        Call it at the end of an attempt, while the queue has the pod: no pod is woken by itself.
        """
        if self._cache.forget(uid, node):
            pod = self._queue.pod(uid)
            self._queue.move(ClusterEvent(EventKind.POD_FORGOTTEN, node, pod=pod), by=uid)

    def _assume(self, pod: Object, node: str, requests: Resources | None = None) -> None:
        self._cache.assume(pod, node, self._clock.monotonic(), requests)
        self._note_lapse()

    def _note_lapse(self) -> None:
        """Wake `run` if a promise ends before those that it knows."""
        moment = self._cache.next_lapse()
        if moment is not None and (self._awaited is None or moment < self._awaited):
            self._sooner.set()

    def _check(self, pod: Object, node: str) -> Status:
        snapshot = self._cache.snapshot()
        return self._framework.check(pod, snapshot, node)
