"""Keeps a live copy of some objects of one API server: list, watch, resume, list again.

Events flow from the watch into the store, and from there, as (old, new) pairs, to subscribers,
which only ever put keys into queues. Two promises matter to all code that deletes objects: `synced`
is not set before one complete list was stored, and an object leaves the store only by a DELETED
event or by being absent from a later complete list. A failed list changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final

from vnode.api import objects
from vnode.api.clock import Clock, SystemClock, happens_within
from vnode.api.errors import (
    ApiError,
    Denied,
    Gone,
    NotFound,
    TooManyRequests,
    Unreachable,
    VnodeError,
)
from vnode.api.kinds import Kind
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.kube import read_limit, watching
from vnode.kube.client import Client
from vnode.kube.object_filter import BATCH, ObjectFilter
from vnode.kube.store import IndexFunction, Store
from vnode.kube.watching import ListOptions
from vnode.telemetry import metrics

Handler = Callable[[Object | None, Object | None], None]

_BACKOFF_FIRST: Final = 0.2  # seconds
_BACKOFF_LIMIT: Final = 5.0  # seconds; the return of a server is noticed at most this much later
_DENIED: Final = 200.0  # seconds until an optional informer asks again; no silence for alerts
_HOT: Final = 0.5  # seconds; watches that end without an event sooner than this get a pause

_running: Final[set[Informer]] = set()  # for `measure`

log = logging.getLogger(__name__)


def measure() -> None:
    """Update the gauges of all running informers; several may share a series."""
    held: dict[tuple[str, str], int] = {}
    silent: dict[tuple[str, str], float] = {}
    for informer in _running:
        held[informer.series] = held.get(informer.series, 0) + len(informer.store)
        silent[informer.series] = max(silent.get(informer.series, 0.0), informer.silence)

    metrics.STORE_OBJECTS.clear()
    metrics.INFORMER_SILENCE.clear()
    for series, count in held.items():
        metrics.STORE_OBJECTS.labels(*series).set(count)
        metrics.INFORMER_SILENCE.labels(*series).set(silent[series])


class Informer:
    """Keeps a store of objects of one kind up to date in `run`.

    `trim` makes an object smaller before it is stored; with `metadata_only` the server sends no
    more than metadata. `accept` is for API servers that need not be honest: an object that it
    refuses is treated as if it had not been sent, and the bytes that are taken are bounded, in all
    and over time (`read_limit`). One that is `optional` may be denied, for good: then it asks
    rarely. With `ends_denied`, `run` raises Denied once it is forbidden, instead of asking again.
    `failure` says why the last attempt failed; None after a success. `answered` is set with
    `synced`, or once the server says that there is no such kind, or that it may not be listed: wait
    for it where a kind is optional.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        trim: Callable[[Object], Object] | None = None,
        accept: Callable[[Any], bool] | None = None,
        indexes: Mapping[str, IndexFunction] | None = None,
        optional: bool = False,
        ends_denied: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.kind = kind
        self.store = Store(indexes)
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        self.failure: VnodeError | None = None
        self._client = client
        self._selection = ListOptions(
            kind, namespace, label_selector, field_selector, metadata_only
        )
        self._optional = optional
        self._ends_denied = ends_denied
        self._trim = trim
        self._filter = ObjectFilter(client, kind, accept)
        self._wait_for_tokens = read_limit.unlimited if accept is None else client.read_limiter.wait
        self._handlers: Listeners[Object | None, Object | None] = Listeners()
        self._clock: Clock = clock or SystemClock()
        self._version = ""  # where the next watch starts; "" means that a list comes first
        self._wake = asyncio.Event()  # set to end a back-off early
        self._last_answer = self._clock.monotonic()  # when the API server last sent something
        self._delay = _BACKOFF_FIRST  # of the next back-off

    @property
    def series(self) -> tuple[str, str]:
        """The labels of the informer's metrics: cluster and resource."""
        return self._client.name, self.kind.plural

    @property
    def silence(self) -> float:
        """Seconds since the API server last sent a list, an event or a bookmark."""
        return self._clock.monotonic() - self._last_answer

    def subscribe(self, handler: Handler) -> None:
        """Call `handler(old, new)` for every change from now on, and for every stored object.

        `old` is None for a new object, `new` is None for one that is gone. The handler must not
        await.
        """
        self._handlers.add(handler)
        for obj in list(self.store.values()):
            self._call(handler, None, obj)

    def subscribe_by_key(self, handler: Callable[[str], None]) -> None:
        """Call `handler` with the key of each object that has changed, as `subscribe` does."""
        self.subscribe(lambda old, new: handler(objects.key(objects.latest(old, new))))

    def retry_now(self) -> None:
        """End a back-off early; call it when the API server seems to be back."""
        self._wake.set()

    @classmethod
    def of_object(
        cls,
        client: Client,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        clock: Clock | None = None,
    ) -> Informer:
        """Make an informer for the one object of that name; no other need be readable."""
        selector = f"metadata.name={name}"
        return cls(client, kind, namespace=namespace, field_selector=selector, clock=clock)

    async def run(self) -> None:
        """List and watch until cancelled; failures are kept in `failure` and retried."""
        _running.add(self)
        self._last_answer = self._clock.monotonic()
        try:
            await self._list_and_watch()
        finally:
            _running.discard(self)

    async def _list_and_watch(self) -> None:
        while True:
            listed = not self._version
            await self._wait_for_tokens(read_limit.LIST if listed else read_limit.WATCH)
            try:
                if listed:
                    await self._list()

                await self._watch()
            except Gone as error:
                self._count_end("expired")
                if listed:  # just now: listed again at once, it would expire again
                    await self._fail(error)

                self._version = ""
            except VnodeError as error:
                self._count_end("error")
                await self._fail(error)
            except Exception as error:
                log.exception("%s of %s cannot be kept", self.kind.plural, self._client.name)
                self._count_end("error")
                self._version = ""  # the same event would fail again
                await self._fail(Unreachable(f"unexpected {type(error).__name__}"))

    def _succeeded(self) -> None:
        """Note that a watch was accepted: only that shows that the server is back."""
        self.failure = None
        self._delay = _BACKOFF_FIRST

    async def _fail(self, error: VnodeError) -> None:
        denied = self._optional and isinstance(error, (Denied, NotFound))
        if self.failure is None or str(self.failure) != str(error):
            level = logging.INFO if denied else logging.WARNING
            log.log(level, "%s of %s: %s", self.kind.plural, self._client.name, error)

        self.failure = error
        if isinstance(error, (Denied, NotFound)):
            self.answered.set()

        if isinstance(error, ApiError) and not isinstance(error, TooManyRequests):
            self._version = ""

        is_forbidden = isinstance(error, Denied) and error.status == HTTPStatus.FORBIDDEN
        if self._ends_denied and is_forbidden:
            raise error

        delay = self._delay
        self._delay = min(delay * 2, _BACKOFF_LIMIT)
        if isinstance(error, TooManyRequests):
            delay = max(delay, error.retry_after)
        elif denied:
            delay = _DENIED
            self._last_answer = self._clock.monotonic()

        self._wake.clear()
        await happens_within(self._wake, delay * random.uniform(0.8, 1.2))  # noqa: S311 - jitter

    async def _list(self) -> None:
        items, version = await self._client.list_at(
            self.kind,
            self._selection.namespace,
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            metadata_only=self._selection.metadata_only,
            limit=self._filter.limit,
        )
        if not version:
            raise Unreachable(f"{self._client.name}: a list of {self.kind.plural} has no version")

        metrics.RELISTS.labels(*self.series).inc()
        self._last_answer = self._clock.monotonic()
        self._filter.begin()
        items = await self._filter.filter(items)
        seen = {objects.key(item) for item in items}
        for key in [key for key in self.store if key not in seen]:
            self._remove(key)

        for number, item in enumerate(items, 1):
            self._put(item)
            if number % BATCH == 0:
                await asyncio.sleep(0)

        self._version = version
        self.synced.set()
        self.answered.set()

    async def _watch(self) -> None:
        """Watch from the last version until the watch ends cleanly."""
        started, events = self._clock.monotonic(), 0
        self._filter.begin()
        async with aclosing(
            watching.stream(self._client, self._selection, self._version)
        ) as batches:
            async for batch in batches:
                self._succeeded()
                events += len(batch)
                self._last_answer = self._clock.monotonic()
                for event in batch:
                    self._apply(event)
                    self._filter.add_event(event.size, event.values)
                    await self._wait_for_tokens(1 + event.size / read_limit.UNIT)

        self._count_end("clean")
        if not events and self._clock.monotonic() - started < _HOT:
            await self._clock.sleep(_HOT)

    def _apply(self, event: watching.Event) -> None:
        obj = event.object
        if event.type == watching.TOO_LARGE:
            self._filter.leave_out(objects.key(obj))
            self._remove(objects.key(obj))
            self._version = objects.resource_version(obj) or self._version
            return

        if event.type != watching.BOOKMARK and not self._filter.takes(obj):
            return

        if event.type == watching.DELETED:
            self._remove(objects.key(obj), obj)
        elif event.type != watching.BOOKMARK:
            self._put(obj)

        self._version = objects.resource_version(obj) or self._version

    def _put(self, obj: Object) -> None:
        known = self.store.get(objects.key(obj))
        if known is not None and objects.resource_version(known) == objects.resource_version(obj):
            return

        objects.metadata(obj).pop("managedFields", None)
        if self._trim is not None:
            obj = self._trim(obj)

        if known is not None and objects.uid(known) != objects.uid(obj):
            self._remove(objects.key(obj))

        self._notify(self.store.put(obj), obj)

    def _remove(self, key: str, last: Object | None = None) -> None:
        """Forget an object; subscribers get its last known state."""
        old = self.store.pop(key)
        if old is not None:
            self._notify((self._trim(last) if self._trim else last) if last else old, None)

    def _notify(self, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            self._call(handler, old, new)

    def _call(self, handler: Handler, old: Object | None, new: Object | None) -> None:
        try:
            handler(old, new)
        except Exception:
            log.exception("a subscriber to %s of %s failed", self.kind.plural, self._client.name)

    def _count_end(self, why: str) -> None:
        metrics.WATCH_ENDS.labels(*self.series, why).inc()
