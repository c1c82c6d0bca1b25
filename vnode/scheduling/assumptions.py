"""Pods on their way to a node: counted there from the moment at which they may still be.

Each check and the count that follows it happen in one step of the event loop, so that of two pods
that must not meet, the second to ask sees the first, however long both of them then wait for their
targets.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.status import SUCCESS, Status


class Assumptions:
    """Writes assumptions into the cache; the queue hears of those that are withdrawn."""

    def __init__(
        self, framework: Framework, cache: Cache, queue: SchedulingQueue, clock: Clock
    ) -> None:
        self._framework = framework
        self._cache = cache
        self._queue = queue
        self._clock = clock

    @property
    def generation(self) -> int:
        """What `assume` takes as `seen` from who has made its decision now."""
        return self._cache.generation

    def assume(self, pod: Object, node: str, seen: int | None = None) -> Status:
        """Count the pod on the node, unless the plugins' Filter says by now that it must not be.

        They are not asked if nothing has changed since the cache's generation `seen`.
        """
        if seen != self._cache.generation:
            said = self._check(pod, node)
            if not said.is_success:
                return said

        self._cache.assume(pod, node, self._clock.monotonic())
        return SUCCESS

    def confirm(self, pod: Object, node: str) -> Status:
        """The same for a pod whose target has reserved its place: there, it is counted already."""
        said = self._check(pod, node)
        uid = objects.uid(pod)
        if said.is_success and not self._cache.has(uid, node):
            self._cache.assume(pod, node, self._clock.monotonic())
            self._cache.observe(uid, node)

        return said

    def forget(self, uid: str, node: str) -> None:
        """The pod does not go there: whom it has kept off may have a chance.

        For the end of an attempt, when the queue knows of it: nobody is kept off by itself.
        """
        if self._cache.forget(uid, node):
            self._queue.move(ClusterEvent(EventKind.POD_FORGOTTEN, node), by=uid)

    def _check(self, pod: Object, node: str) -> Status:
        snapshot = self._cache.snapshot(self._clock.monotonic())
        return self._framework.check(pod, snapshot, node)
