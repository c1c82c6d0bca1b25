"""Tells the Events of delegates on their proxies, where users look for them.

A target's agent keeps a list of a delegate's Events in its chaperon (`event_record`). This
controller compares it with what is told already, and writes the difference; whatever it misses, it
finds when it looks again. By default, what goes as it should is one Event for each pod, written
when the pod has started, so that a burst of pods costs one write for each of them.

A target may be hostile: an Event is about the proxy of its own chaperon only, has bounded parts
(`proxy_events`), and costs a token of the pod and one of the target. Without tokens it waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import AlreadyExists, Denied, Invalid, NotFound
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.kube.client import Client
from vnode.pods import event_record
from vnode.pods.event_record import FIELD, DelegateEventsMode, EventEntry
from vnode.pods.source import proxy_events
from vnode.pods.source.earlier_events import EarlierEvents
from vnode.pods.source.proxy_events import ProxyEvent
from vnode.runtime import startup
from vnode.runtime.controller import Controller
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.supervisor import sleep_forever
from vnode.telemetry import audit

SUMMARY_DELAY: Final = 5.0  # seconds that ordinary Events of a pod that does not start are held
RECOUNT: Final = 60.0  # seconds between two writes of an Event if nothing but its count is new
POD_BURST: Final = 15
POD_RATE: Final = 1 / 60  # writes a second
TARGET_BURST: Final = 1000
TARGET_RATE: Final = 20.0
EXPIRED: Final = timedelta(hours=1)  # for which API servers keep Events
_NO_TOKEN: Final = 5.0  # seconds until an Event that was one too many is tried again, at least
_AT_ONCE: Final = 4  # pods of one target whose Events are written at once

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Written:
    """An Event that is there: what it says, and when (monotonic) it was written."""

    words: str
    count: int
    at: float


@dataclass(slots=True)
class _EventRecord:
    """What is told of one delegate on its proxy."""

    uid: str
    since: float  # monotonic; when the first Event was heard of
    bucket: TokenBucket = field(default_factory=lambda: TokenBucket(POD_RATE, POD_BURST))
    written: dict[str, _Written] = field(default_factory=dict)  # by name; of Events that are wanted


class DelegateEventReporter:
    """Writes Events on bound proxies; `find` returns the pod of a key."""

    def __init__(
        self,
        client: Client,
        links: Links,
        find: Callable[[str], Object | None],
        *,
        mode: DelegateEventsMode,
        clock: Clock,
    ) -> None:
        self._client = client
        self._links = links
        self._find = find
        self._mode = mode
        self._clock = clock
        self._controller: Controller[str] = Controller(
            "delegate-events",
            self._reconcile,
            subject=audit.finder(kinds.PODS, find),
            workers=_AT_ONCE,
            lane=self._node_of,
            namespace=objects.key_namespace,
        )
        self._records: dict[str, _EventRecord] = {}  # by key of the proxy; goes with it
        self._buckets: dict[str, TokenBucket] = {}  # by node
        self._earlier = EarlierEvents()

    async def run(self) -> None:
        """Write Events until cancelled."""
        if self._mode == "None":
            await sleep_forever()

        await self._read_earlier()
        self._links.subscribe(self._on_link, lambda _link: None)
        await self._controller.run()

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Forget a pod that is gone, and look at one that is bound when it is first seen."""
        key = objects.key(objects.latest(old, new))
        if new is None:
            self._records.pop(key, None)
        elif old is None and objects.node_name(new) and self._mode != "None":
            self._controller.add(key)

    async def _read_earlier(self) -> None:
        """Read the Events of vnode that are there, not to write them again."""
        try:
            await startup.wait_for_answer(lambda: self._earlier.read(self._client), self._clock)
        except (Denied, Invalid, NotFound) as error:
            log.warning("Events of delegates may be told again, as none can be read: %s", error)

    def _node_of(self, key: str) -> str:
        return objects.node_name(self._find(key) or {})

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(self._on_chaperon)

    def _on_chaperon(self, old: Object | None, new: Object | None) -> None:
        before, after = objects.status(old or {}), objects.status(new or {})
        if before.get(FIELD) != after.get(FIELD) or (FIELD in after and _phase_differs(old, new)):
            self._controller.add(parent_key(objects.latest(old, new)))

    async def _reconcile(self, key: str) -> float | None:
        proxy = self._find(key)
        link = self._links.get(objects.node_name(proxy or {}))
        candidate = link.candidate(key, objects.uid(proxy or {})) if link else None
        if proxy is None or link is None or candidate is None:
            return None

        entries = event_record.read(objects.status(candidate))
        if not entries:
            return None

        events = self._wanted(proxy, entries, link)
        record, now = self._record_of(key, proxy, events), self._clock.monotonic()
        left = record.since + SUMMARY_DELAY - now
        wait = left if left > TICK and proxy_events.summary_may_wait(candidate, entries) else None
        if self._mode != "Summary":
            wait = None

        is_ending = objects.is_terminating(proxy) or objects.is_terminating(candidate)
        if wait is not None or is_ending:
            events = [event for event in events if not event.is_summary]

        later = [await self._publish(record, event, link) for event in events]
        if wait is None and not is_ending:
            names = {event.name for event in events}
            record.written = {name: kept for name, kept in record.written.items() if name in names}

        return min((each for each in (wait, *later) if each is not None), default=None)

    def _wanted(self, proxy: Object, entries: list[EventEntry], link: Link) -> list[ProxyEvent]:
        target, now = str(link.target), self._clock.now()
        return proxy_events.wanted(proxy, entries, target, mode=self._mode, now=now)

    def _record_of(self, key: str, proxy: Object, events: list[ProxyEvent]) -> _EventRecord:
        """Return what is told of a delegate, with what an earlier leader has."""
        record = self._records.get(key)
        if record is not None and record.uid == objects.uid(proxy):
            return record

        now, oldest = self._clock.monotonic(), self._clock.now() - EXPIRED
        record = self._records[key] = _EventRecord(objects.uid(proxy), now)
        created = objects.created_at(proxy)
        for event in events:
            earlier = self._earlier.take(event.body)
            if earlier is None and created and max(created, event.last) < oldest:
                earlier = event.words, event.count  # it was told, and has expired

            if earlier is not None:
                record.written[event.name] = _Written(*earlier, at=now)

        return record

    async def _publish(self, record: _EventRecord, event: ProxyEvent, link: Link) -> float | None:
        """Write an Event unless it is there; return in how many seconds to try again."""
        known, now = record.written.get(event.name), self._clock.monotonic()
        if known is not None and known.words == event.words:
            if known.count >= event.count:
                return None

            if (left := known.at + RECOUNT - now) > TICK:
                return left

        target = self._buckets.setdefault(link.node_name, TokenBucket(TARGET_RATE, TARGET_BURST))
        if (wait := max(record.bucket.wait(now), target.wait(now))) > 0:
            return max(wait, _NO_TOKEN)

        record.bucket.take(now)
        target.take(now)

        try:
            await self._write(event, exists=known is not None)
        except (Denied, Invalid, NotFound) as error:  # as in a namespace that is being deleted
            log.info("event %s was not recorded: %s", objects.key(event.body), error)

        record.written[event.name] = _Written(event.words, event.count, now)
        return None

    async def _write(self, event: ProxyEvent, *, exists: bool) -> None:
        namespace = objects.namespace(event.body)
        if not exists:
            with suppress(AlreadyExists):
                await self._client.create(kinds.EVENTS, event.body, namespace)
                return

        fields = ("reason", "message", "count", "lastTimestamp")
        body = {field: event.body[field] for field in fields}
        try:
            await self._client.patch(kinds.EVENTS, event.name, body, namespace)
        except NotFound:  # it has expired
            await self._client.create(kinds.EVENTS, event.body, namespace)


def _phase_differs(old: Object | None, new: Object | None) -> bool:
    return objects.status(old or {}).get("phase") != objects.status(new or {}).get("phase")
