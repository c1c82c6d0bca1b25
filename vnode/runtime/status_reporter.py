"""Writes the status of objects of ours: what differs, in intervals, with Events of what has turned.

Whoever reconciles an object says what its status should be. That is compared with the store, which
lags behind: so nothing is decided upon an object that is older than our last write (`pending`), and
writes of others are neither fought nor doubled. A status that keeps changing, because a target
answers something else each time, is written in intervals (`write_limits`). Only the leader writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from vnode.api import objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.runtime.expectations import Expectations
from vnode.runtime.write_limits import WriteLimit, WriteLimiter

K = TypeVar("K", bound=Hashable)

_OBSERVED: Final = "observedGeneration"

log = logging.getLogger(__name__)


class StatusReporter(Generic[K]):
    """Writes for one term of a leader; `wake` has a key reconciled again whose write was lost.

    Without `events` none are recorded; `is_news` chooses the conditions that are worth one.
    `has_generation` says that the status has a field for the generation that it is about, by which
    tools like Flux know that it is not about an earlier one.
    """

    def __init__(
        self,
        client: Client,
        resource: str,
        limit: WriteLimit,
        *,
        wake: Callable[[K], None],
        clock: Clock,
        events: EventRecorder | None = None,
        is_news: Callable[[Object, Object], bool] = status_conditions.turned,
        has_generation: bool = True,
    ) -> None:
        self.expectations = Expectations(wake)
        self._client = client
        self._limiter: WriteLimiter[K] = WriteLimiter(resource, limit, clock)
        self._events = events
        self._is_news = is_news
        self._has_generation = has_generation

    def pending(self, key: K, obj: Object) -> bool:
        """Tell whether an object is older than our last write, whose event wakes the key."""
        return self.expectations.pending(key, obj)

    def forget(self, key: K) -> None:
        """Drop what is known of an object that is gone."""
        self.expectations.forget(key)
        self._limiter.forget(key)

    async def report(
        self,
        key: K,
        kind: Kind,
        obj: Object,
        status: Object,
        then: Callable[[Object], None] = lambda _after: None,
    ) -> float | None:
        """Write those of these fields that differ, unless they are None.

        Calls `then` with the object as it is after a write. Returns the seconds until it may be
        written, None if there is nothing left to write.
        """
        known = objects.status(obj)
        news = {f: v for f, v in status.items() if v is not None and known.get(f) != v}
        if not news:
            return None

        if wait := self._limiter.take(key):
            return wait

        if self._has_generation and (generation := objects.metadata(obj).get("generation")):
            news[_OBSERVED] = generation  # conditions differ with it, so it never differs alone

        body = objects.status_patch(obj, news)
        after = await self.expectations.patch(
            self._client, kind, obj, body, key=key, subresource="status"
        )
        if after is None:
            log.debug("%s %s is gone", kind.kind, objects.key(obj))
            return None

        then(after)
        before = known.get("conditions") or ()
        for condition in news.get("conditions") or ():
            if condition not in before and self._is_news(obj, condition):
                self._tell(kind, obj, condition)

        return None

    def _tell(self, kind: Kind, obj: Object, condition: Object) -> None:
        reason, message = condition["reason"], condition["message"]
        log.info("%s %s: %s: %s", kind.kind, objects.key(obj), reason, message)
        if self._events is not None:
            type_ = NORMAL if condition["status"] == "True" else WARNING
            about = objects.reference(obj, kind.kind, kind.api_version)
            self._events.event(about, type_, reason, message)
