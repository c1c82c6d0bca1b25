"""Collects the Events of delegates, for the reports on their chaperons.

Components of the target (scheduler, kubelet, controllers) write Events about delegates. This module
watches them and keeps a short list for each delegate (`event_record`), which the chaperon
controller writes into the status of the chaperon. A report that is due anyway carries the list with
it, so that a pod that goes well costs no request more. A write of its own is for Warnings, for a
pod that does not start, and for one that started before anything was told of it: within bounds,
since anybody in the target may write Events.

Nothing is kept but these lists, and they are on the chaperons, too: an agent that starts watches
from that moment on. What happened while nobody watched is repeated by its component, if it matters
still. That a candidate has no place is left out: it is a condition, in words of its own. An Event
may come before the binding that it tells of, since each kind has its own watch: what only a pod
with a node has is kept until the binding is seen.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object, Objects
from vnode.api.token_bucket import TokenBucket
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kube.retry_watcher import RetryWatcher
from vnode.kube.watching import ListOptions
from vnode.pods import delegate, event_record
from vnode.pods.event_record import ENTRIES, FIELD, DelegateEventsMode, EventEntry

SPACING: Final = 10.0  # seconds between two writes of a chaperon for Events alone
RECOUNT: Final = 300.0  # seconds between two if nothing but a count has changed
SLOW: Final = 5.0  # seconds until ordinary Events of a pod that awaits them are written
_RATE: Final = 10.0  # writes for Events alone in a second, of all pods
_BURST: Final = 100
_NO_TOKEN: Final = 1.0  # seconds until such a write that was one too many is tried again
LONGEST_UID: Final = 64  # characters; a UID has 36
_COUNTED: Final = 32  # Event objects of one pod whose counts are remembered

_EVENTS_OF_PODS: Final = ListOptions(kinds.EVENTS, field_selector="involvedObject.kind=Pod")


@dataclass(slots=True)
class _Collected:
    """The Events of one delegate, and when (monotonic) they are worth a write of their own."""

    uid: str
    entries: dict[tuple[str, ...], EventEntry]  # the latest is last
    counts: dict[str, int] = field(default_factory=dict)  # by name of the Event object
    due: float = math.inf
    due_if_awaited: float = math.inf
    written_at: float = -math.inf


class DelegateEventCollector:
    """Keeps the Events of delegates that may run.

    `wake` is called with the key of a chaperon, and the seconds after which to report it.
    """

    def __init__(
        self,
        client: Client,
        chaperons: Informer,
        delegates: Informer,
        wake: Callable[[str, float], None],
        *,
        mode: DelegateEventsMode,
        clock: Clock,
    ) -> None:
        self._chaperons = chaperons
        self._delegates = delegates
        self._wake = wake
        self._mode = mode
        self._clock = clock
        self._watchers = [
            RetryWatcher(client, replace(_EVENTS_OF_PODS, namespace=place), self._on_event, clock)
            for place in client.scope.places(kinds.EVENTS, None)
        ]
        self._collected: dict[str, _Collected] = {}  # by key of the chaperon; goes with it
        self._bucket = TokenBucket(_RATE, _BURST)

    async def run(self) -> None:
        """Watch until cancelled; only a cluster that gets pods reads Events."""
        if self._mode == "None":
            return

        first = asyncio.Event()
        self._chaperons.subscribe(lambda _old, _new: first.set())
        await first.wait()
        async with asyncio.TaskGroup() as group:
            for watcher in self._watchers:
                group.create_task(watcher.run(), name="delegate-events-watch")

    def forget(self, key: str) -> None:
        """Forget the Events of a chaperon that is gone."""
        self._collected.pop(key, None)

    def field(self, chaperon: Object, pod: Object) -> Objects | None:
        """Return the list that the chaperon's status is to have; None for none."""
        collected = self._of(chaperon, pod)
        if collected is None:
            return objects.status(chaperon).get(FIELD)

        return event_record.write(collected.entries.values())

    def left(self, chaperon: Object, pod: Object, *, warnings: bool = False) -> float | None:
        """Return the seconds until the list is worth a write of its own; None if it is not.

        With `warnings` only Warnings count.
        """
        collected = self._of(chaperon, pod)
        if collected is None or not delegate.may_have_run(chaperon, pod):
            return None

        is_pending = objects.status(pod).get("phase") in (None, "Pending")
        is_awaited = is_pending or not objects.status(chaperon).get(FIELD)
        ordinary = collected.due_if_awaited if is_awaited and not warnings else math.inf
        due = min(collected.due, ordinary)
        if due == math.inf:
            return None

        left = due - self._clock.monotonic()
        return left if left > TICK else 0.0

    def may_write(self, chaperon: Object, pod: Object) -> bool:
        """Tell whether the list may have a write of its own now; ask before each."""
        if self.left(chaperon, pod) != 0:
            return False

        now = self._clock.monotonic()
        if self._bucket.take(now):
            return True

        if (collected := self._of(chaperon, pod)) is not None:
            collected.due = max(collected.due, now + _NO_TOKEN)
            collected.due_if_awaited = max(collected.due_if_awaited, now + _NO_TOKEN)

        return False

    def settled(self, key: str, *, written: bool) -> None:
        """Note that the chaperon has the list, by a write of this moment or of another one."""
        if (collected := self._collected.get(key)) is None:
            return

        collected.due = collected.due_if_awaited = math.inf
        if written:
            collected.written_at = self._clock.monotonic()

    def _of(self, chaperon: Object, pod: Object) -> _Collected | None:
        collected = self._collected.get(objects.key(chaperon))
        return collected if collected and collected.uid == objects.uid(pod) else None

    def _on_event(self, event: Object) -> None:
        about = event.get("involvedObject") or {}
        key = objects.join_key(str(about.get("namespace", "")), str(about.get("name", "")))
        chaperon = self._chaperons.store.get(key)
        if chaperon is None:
            return

        entry, uid = event_record.of_event(event), str(about.get("uid", ""))
        if len(uid) > LONGEST_UID:  # of no pod: whoever writes an Event chooses it
            return

        if entry is None or not uid or (self._mode == "Warnings" and not entry.is_warning):
            return

        may_run = delegate.may_have_run(chaperon, self._delegates.store.get(key) or {})
        if not may_run and entry.is_warning and not entry.host:  # as that there is no place for it
            return

        collected = self._collected.get(key)
        if collected is None or collected.uid != uid:
            entries = event_record.read(objects.status(chaperon))
            collected = _Collected(uid, {known.key: known for known in entries})
            self._collected[key] = collected

        self._add(collected, entry, objects.name(event))
        if (soonest := min(collected.due, collected.due_if_awaited)) < math.inf:
            self._wake(key, max(0.0, soonest - self._clock.monotonic()))

    def _add(self, collected: _Collected, entry: EventEntry, name: str) -> None:
        known = collected.entries.pop(entry.key, None)
        if known is None:
            grown = entry.count
        elif name in collected.counts:
            grown = entry.count - collected.counts[name]
        else:  # another Event of the same words, or one that another agent has counted
            grown = 1

        collected.counts.pop(name, None)
        collected.counts[name] = entry.count
        if len(collected.counts) > _COUNTED:
            del collected.counts[next(iter(collected.counts))]

        if known is not None:
            first, count = min(known.first, entry.first), known.count + max(0, grown)
            entry = replace(entry, first=first, last=max(known.last, entry.last), count=count)

        collected.entries[entry.key] = entry
        if len(collected.entries) > ENTRIES:
            del collected.entries[_least(collected.entries)]

        self._set_due(collected, entry, is_new=known is None)

    def _set_due(self, collected: _Collected, entry: EventEntry, *, is_new: bool) -> None:
        now = self._clock.monotonic()
        if entry.is_warning:
            spacing = SPACING if is_new else RECOUNT
            collected.due = min(collected.due, max(now, collected.written_at + spacing))
        elif is_new:
            soonest = max(now + SLOW, collected.written_at + SPACING)
            collected.due_if_awaited = min(collected.due_if_awaited, soonest)


def _least(entries: dict[tuple[str, ...], EventEntry]) -> tuple[str, ...]:
    """Return the key of the oldest ordinary entry; of the oldest one if all are Warnings."""
    oldest = next(iter(entries))
    return next((key for key, entry in entries.items() if not entry.is_warning), oldest)
