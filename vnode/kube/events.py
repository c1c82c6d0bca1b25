"""Records Kubernetes Events in the background; repeated Events are merged; never blocks a caller.

`EventRecorder.event` only queues. `run` writes: a first occurrence at once, further ones as a
higher `count` on the same Event, at most once a minute. While the API server is slow or away,
Events wait; when too many wait, new ones are dropped and counted, because no work may wait for an
Event. Namespaces take turns, and a flood in one costs no other its Events (`event_queue`). Events
of an object about which too many different ones are told are dropped, too, as client-go's
EventSourceObjectSpamFilter does: messages quote other clusters, which may say something else each
time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections import Counter as Counts
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client import Counter

from vnode.api import kinds, objects, visible
from vnode.api.clock import Clock, SystemClock, happens_within
from vnode.api.durations import TICK
from vnode.api.errors import (
    AlreadyExists,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
    VnodeError,
)
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.kube.client import Client
from vnode.kube.event_queue import EventQueue, over_share
from vnode.telemetry import metrics

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

WINDOW: Final = 600.0  # seconds without a repetition after which the next one is a new Event
REWRITE: Final = 60.0  # seconds between two writes of one Event
MESSAGE_LIMIT: Final = 1024  # characters, the API server's own limit
SERIES_LIMIT: Final = 4096  # Events that are remembered, to count repetitions
WAITING_LIMIT: Final = 1000  # new Events that wait to be written
OBJECT_BURST: Final = 25  # different Events about one object at once, as in client-go
OBJECT_RATE: Final = 1 / 300  # and a second, over time
_RETRY: Final = 5.0  # seconds
_NAME_ROOM: Final = 253 - 17  # characters that a dot and 16 hex digits leave for an object's name

DROPPED: Final = Counter(
    "vnode_events_dropped_total",
    "Kubernetes Events that were not recorded: too many waited, or were about one object.",
    ["api_server"],
    registry=metrics.REGISTRY,
)

log = logging.getLogger(__name__)

_Key = tuple[str, str, str, str]  # object, type, reason, message


@dataclass(slots=True)
class _Series:
    """Counts one Event. `written` is the count that the API server has."""

    about: Object
    first: datetime
    last: datetime
    seen_at: float  # monotonic, of the last occurrence
    count: int = 1
    written: int = 0
    written_at: float = float("-inf")  # monotonic


def about(pod: Object) -> Object:
    """Return the ObjectReference to a pod, as `EventRecorder.event` takes it."""
    return objects.reference(pod, kinds.PODS.kind, kinds.PODS.api_version)


class EventRecorder:
    """Records Events in the cluster of `client`, in the name of `component`."""

    def __init__(self, client: Client, component: str, clock: Clock | None = None) -> None:
        self._client = client
        self._component = component
        self._clock: Clock = clock or SystemClock()
        # By namespace, none empty; the latest used is last. All together are SERIES_LIMIT.
        self._series: dict[str, OrderedDict[_Key, _Series]] = {}
        self._counts: Counts[str] = Counts()  # of those
        self._forget_at = 0.0  # when (monotonic) those that are not repeated any more go
        # By object; the latest used is last, and there are no more than SERIES_LIMIT.
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._queue: EventQueue[_Key] = EventQueue(WAITING_LIMIT)  # all are in `_series`
        self._wake = asyncio.Event()  # set when an Event is due earlier than `run` knows

    def event(self, about: Object, type_: str, reason: str, message: str) -> None:
        """Queue an Event on the object to which `about`, an ObjectReference, points.

        `type_` is NORMAL or WARNING, `reason` a CamelCase word, `message` for people.
        """
        message = visible.line(message[:MESSAGE_LIMIT])
        identity = "/".join(str(about.get(part, "")) for part in ("kind", "namespace", "name"))
        key = (f"{identity}/{about.get('uid', '')}", type_, reason, message)
        now, moment = self._clock.monotonic(), self._clock.now()
        namespace = _namespace(about)
        series = self._known(namespace, key)
        if series is not None and now - series.seen_at < WINDOW:
            series.count += 1
            series.last, series.seen_at = moment, now
            self._series[namespace].move_to_end(key)
        elif not self._bucket(key[0]).take(now):
            DROPPED.labels(self._client.name).inc()
            return
        else:
            series = _Series(about, moment, moment, now)
            self._remember(namespace, key, series)

        if (namespace, key) in self._queue:
            return

        if series.written:
            self._queue.add_later(namespace, key, max(now, series.written_at + REWRITE))
        elif not self._queue.add_new(namespace, key):
            DROPPED.labels(self._client.name).inc()

        self._wake.set()

    async def run(self) -> None:
        """Write Events until cancelled."""
        while True:
            self._wake.clear()
            while (found := self._queue.next(self._clock.monotonic())) is not None:
                if not await self._write(*found):
                    await self._clock.sleep(_RETRY)

            now = self._clock.monotonic()
            self._forget_old(now)
            wait = min(self._queue.due_in(now), self._forget_at - now if self._series else math.inf)
            await happens_within(self._wake, None if wait == math.inf else max(TICK, wait))

    def _bucket(self, about: str) -> TokenBucket:
        bucket = self._buckets.setdefault(about, TokenBucket(OBJECT_RATE, OBJECT_BURST))
        self._buckets.move_to_end(about)
        if len(self._buckets) > SERIES_LIMIT:
            self._buckets.popitem(last=False)

        return bucket

    def _known(self, namespace: str, key: _Key) -> _Series | None:
        known = self._series.get(namespace)
        return known.get(key) if known else None

    def _remember(self, namespace: str, key: _Key, series: _Series) -> None:
        self._forget(namespace, key)
        if self._counts.total() >= SERIES_LIMIT:
            other = over_share(self._counts, namespace, SERIES_LIMIT)
            self._forget(other, next(iter(self._series[other])))

        self._series.setdefault(namespace, OrderedDict())[key] = series
        self._counts[namespace] += 1

    def _forget(self, namespace: str, key: _Key) -> None:
        if self._known(namespace, key) is None:
            return

        known = self._series[namespace]
        del known[key]
        self._queue.remove(namespace, key)
        self._counts[namespace] -= 1
        if not known:
            del self._series[namespace], self._counts[namespace]

    def _forget_old(self, now: float) -> None:
        """Forget, now and then, what is a new Event when it comes again."""
        if now < self._forget_at:
            return

        self._forget_at = now + WINDOW
        for namespace, known in list(self._series.items()):
            for key, series in list(known.items()):
                if now - series.seen_at < WINDOW:
                    break

                if (namespace, key) not in self._queue:
                    self._forget(namespace, key)

    async def _write(self, namespace: str, key: _Key) -> bool:
        """Write one Event; False if the API server takes none at the moment."""
        series = self._series[namespace][key]
        count = series.count
        try:
            await (self._count(key, series) if series.written else self._create(key, series))
        except (Unreachable, ServerError, TooManyRequests) as error:
            log.debug("events wait: %s", error)
            return False
        except VnodeError as error:
            log.info("event %s of %s was not recorded: %s", key[2], key[0], error)
        except Exception:  # one bad Event must not stop all others
            log.exception("event %s of %s cannot be recorded", key[2], key[0])

        series.written, series.written_at = count, self._clock.monotonic()
        if self._known(namespace, key) is series:
            self._queue.remove(namespace, key)
            if series.count > count:
                self._queue.add_later(namespace, key, series.written_at + REWRITE)

        return True

    async def _create(self, key: _Key, series: _Series) -> None:
        with suppress(AlreadyExists):  # the answer to an earlier attempt was lost
            await self._client.create(kinds.EVENTS, self._body(key, series))

    async def _count(self, key: _Key, series: _Series) -> None:
        body = {"count": series.count, "lastTimestamp": objects.timestamp(series.last)}
        namespace = _namespace(series.about)
        try:
            await self._client.patch(kinds.EVENTS, _name(key, series), body, namespace)
        except NotFound:  # Events live for an hour
            await self._create(key, series)

    def _body(self, key: _Key, series: _Series) -> Object:
        _about, type_, reason, message = key
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": _name(key, series), "namespace": _namespace(series.about)},
            "involvedObject": series.about,
            "type": type_,
            "reason": reason,
            "message": message,
            "count": series.count,
            "firstTimestamp": objects.timestamp(series.first),
            "lastTimestamp": objects.timestamp(series.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
        }


def _namespace(about: Object) -> str:
    """Return the Event's namespace: its object's, or `default` if that is cluster-scoped."""
    return str(about.get("namespace") or "default")


def _name(key: _Key, series: _Series) -> str:
    """Return the same name for every attempt to write one Event, so that none is written twice."""
    text = "\n".join((*key, objects.micro_timestamp(series.first)))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{str(series.about.get('name', ''))[:_NAME_ROOM].rstrip('.-')}.{digest}"
