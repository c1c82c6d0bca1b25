"""Follows one selection of objects of an API server: list, watch, resume, list again.

What it reads flows into a sink, which is an informer's: a whole list, or one event after the other.
It knows where to go on after each way in which a list or a watch can end, and when.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, aclosing
from typing import Final, Protocol

from vnode.api import kinds, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import (
    ApiError,
    Denied,
    Gone,
    NotFound,
    TooManyRequests,
    Unreachable,
    VnodeError,
)
from vnode.api.metered import Metered
from vnode.api.objects import Object, Objects
from vnode.api.slices import Slices
from vnode.kube import read_limit, reflector_backoff, watching
from vnode.kube.client import Client
from vnode.kube.object_filter import Accept, ObjectFilter, Trim
from vnode.kube.watching import ListOptions
from vnode.telemetry import metrics

_HOT: Final = 0.5  # seconds; watches that end without an event sooner than this get a pause

log = logging.getLogger(__name__)


class Sink(Protocol):
    """Takes what a reflector keeps of what it reads."""

    async def replace(self, items: Objects, namespace: str | None) -> None:
        """Take a complete list of a namespace; None for all that the sink has."""

    def apply(self, type_: str, obj: Object) -> None:
        """Take an event of the watch."""

    def on_answer(self) -> None:
        """Note that `is_known` or `is_refused` may be another."""


class Reflector:
    """Follows a selection in `run`.

    With `in_scope` it is about one namespace among those that the client is held to. `optional`,
    `ends_denied`, `accept` and `trim` are those of the informer. `failure` says why the last
    attempt failed; None after a success.
    """

    def __init__(
        self,
        client: Client,
        selection: ListOptions,
        sink: Sink,
        *,
        in_scope: bool = False,
        optional: bool = False,
        ends_denied: bool = False,
        accept: Accept | None = None,
        trim: Trim | None = None,
        clock: Clock,
    ) -> None:
        self.failure: VnodeError | None = None
        self.is_listed = False  # since its namespace exists
        self.is_refused = False  # the last answer was that there is no such kind, or no right to it
        self._client = client
        self._selection = selection
        self._sink = sink
        self._in_scope = in_scope
        self._optional = optional
        self._ends_denied = ends_denied
        self._filter = ObjectFilter(client, selection.kind, accept, trim)
        is_limited = accept is not None
        self._wait_for_tokens: Callable[[float], Awaitable[None]] = (
            client.read_limiter.wait if is_limited else read_limit.unlimited
        )
        self._spend = client.read_limiter.spend if is_limited else None
        self._clock = clock
        self._is_absent = False  # its namespace did not exist when it was last refused
        self._version = ""  # where the next watch starts; "" means that a list comes first
        self._wake = asyncio.Event()  # set to end a back-off early
        self._last_answer = clock.monotonic()  # when the API server last sent something
        self._backoff = reflector_backoff.ReflectorBackoff()

    @property
    def namespace(self) -> str | None:
        """The namespace of the selection, None for all."""
        return self._selection.namespace

    @property
    def series(self) -> tuple[str, str]:
        """The labels of its metrics: cluster and resource."""
        return self._client.name, self._plural

    @property
    def _plural(self) -> str:
        return self._selection.kind.plural

    @property
    def is_known(self) -> bool:
        """Whether all objects were listed, or there are none, since there is no such namespace."""
        return self.is_listed or self._is_absent

    @property
    def silence(self) -> float:
        """Seconds since the API server last sent a list, an event or a bookmark."""
        return self._clock.monotonic() - self._last_answer

    def retry_now(self) -> None:
        """End a back-off early."""
        self._wake.set()

    async def run(self) -> None:
        """List and watch until cancelled; failures are kept in `failure` and retried."""
        self._last_answer = self._clock.monotonic()
        await (self._follow() if self._spend is None else Metered(self._follow(), self._spend))

    async def _follow(self) -> None:
        while True:
            listed = not self._version
            await self._wait_for_tokens(read_limit.LIST if listed else read_limit.WATCH)
            try:
                if listed:
                    await self.list()

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
                log.exception("%s of %s cannot be kept", self._plural, self._client.name)
                self._count_end("error")
                self._version = ""  # the same event would fail again
                await self._fail(Unreachable(f"unexpected {type(error).__name__}"))

    def _succeeded(self) -> None:
        """Note that a watch was accepted: only that shows that the server is back."""
        self.failure = None
        self._backoff.succeeded()

    async def _fail(self, error: VnodeError) -> None:
        refused = isinstance(error, (Denied, NotFound))
        denied = refused and (self._optional or self._in_scope)
        if self.failure is None or str(self.failure) != str(error):
            level = logging.INFO if denied else logging.WARNING
            log.log(level, "%s of %s: %s", self._plural, self._client.name, error)

        self.failure = error
        if refused:
            await self._note_refusal()

        if isinstance(error, ApiError) and not isinstance(error, TooManyRequests):
            self._version = ""

        now = self._clock.monotonic()
        is_final = self._backoff.is_final(error, now, was_allowed=self.is_listed)
        if self._ends_denied and is_final:
            raise error

        limit = reflector_backoff.AWAY
        if denied:
            self._last_answer = now
            limit = reflector_backoff.OPTIONAL if self._optional else reflector_backoff.CLOSED

        seconds = self._backoff.pause(error, limit)
        await self._pause(seconds * random.uniform(0.8, 1.2))  # noqa: S311 - jitter

    async def _pause(self, seconds: float) -> None:
        """Wait, or until somebody else could read this namespace."""
        self._wake.clear()
        with ExitStack() as stack:
            if self._in_scope and self.is_refused and self.namespace:
                stack.enter_context(self._client.scope.waiting(self.namespace, self._wake))

            if await happens_within(self._wake, seconds) and self._in_scope:
                self._backoff.reset()

    async def _note_refusal(self) -> None:
        """Take for known what is in a namespace that does not exist: nothing."""
        self.is_refused = True
        self._is_absent = self._in_scope and await self._lacks_namespace()
        if self._is_absent:
            self.is_listed = False
            await self._sink.replace([], self.namespace)

        self._sink.on_answer()

    async def _lacks_namespace(self) -> bool:
        try:
            await self._client.get(kinds.NAMESPACES, self.namespace or "")
        except NotFound:
            return True
        except VnodeError as error:
            log.debug("whether namespace %s exists is not known: %s", self.namespace, error)

        return False

    async def list(self) -> None:
        """Have the sink know all objects that there are."""
        self._filter.begin()
        items, version = await self._client.list_at(
            self._selection.kind,
            self._selection.namespace,
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            metadata_only=self._selection.metadata_only,
            limit=self._filter.limit,
            kept=self._filter.keep,
        )
        if not version:
            raise Unreachable(f"{self._client.name}: a list of {self._plural} has no version")

        metrics.RELISTS.labels(*self.series).inc()
        self._last_answer = self._clock.monotonic()
        self._filter.forget_events()
        await self._sink.replace(items, self.namespace if self._in_scope else None)
        self._version = version
        was_refused, self.is_refused = self.is_refused, False
        self.is_listed, self._is_absent = True, False
        self._sink.on_answer()
        if was_refused and self._in_scope and self.namespace:
            self._client.scope.retry(self.namespace)

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
                slices = Slices(self._clock)
                for event in batch:
                    self._apply(event)
                    self._filter.add_event(event.size, event.values)
                    await self._wait_for_tokens(1 + event.size / read_limit.UNIT)
                    await slices.give_way()

        self._count_end("clean")
        if not events and self._clock.monotonic() - started < _HOT:
            await self._clock.sleep(_HOT)

    def _apply(self, event: watching.Event) -> None:
        obj: Object | None = event.object
        if event.type == watching.TOO_LARGE:
            self._filter.leave_out(objects.key(event.object))
        elif event.type != watching.BOOKMARK:
            obj = self._filter.keep(event.object)

        if obj is None:
            return

        if event.type != watching.BOOKMARK:
            self._sink.apply(event.type, obj)

        self._version = objects.resource_version(obj) or self._version

    def _count_end(self, why: str) -> None:
        metrics.WATCH_ENDS.labels(*self.series, why).inc()
