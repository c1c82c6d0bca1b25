"""Builds the Events of a proxy pod from what its target tells of the delegate's. No I/O.

Each Event has a name of its own that follows from what it says, so an agent that tells it again
meets the first one. The other cluster chooses reason and message, which are bounded; whom it is
about, and who says so, is decided here: component and host begin with the name of the Target, as
those of no kubelet or scheduler of this cluster do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.kube import events
from vnode.kube.events import NORMAL
from vnode.planning import reasons
from vnode.pods import event_record
from vnode.pods.event_record import DelegateEventsMode, EventEntry

REPORTER: Final = "vnode.dev/delegate-events"  # whoever has said it first
_SEPARATOR: Final = "; "
_SCHEDULED: Final = "Scheduled"  # the reason of kube-scheduler's Event
_PENDING: Final = (None, "", "Pending")
_WORDS: Final = 3  # parts of an entry's key that say what happened; then, to which container
_NAME_ROOM: Final = 253 - 17  # characters that a dot and 16 hex digits leave for a pod's name


@dataclass(frozen=True, slots=True)
class ProxyEvent:
    """An Event as it is to be; `words` and `count` tell whether one that exists says the same."""

    name: str
    body: Object
    words: str
    count: int
    last: datetime
    is_summary: bool = False


def summary_may_wait(chaperon: Object, entries: Iterable[EventEntry]) -> bool:
    """Tell whether a pod may yet start as it should, so that one Event can tell it all."""
    pending = objects.status(chaperon).get("phase") in _PENDING
    return pending and not any(entry.is_warning for entry in entries)


def wanted(
    proxy: Object,
    entries: list[EventEntry],
    target: str,
    *,
    mode: DelegateEventsMode,
    now: datetime,
) -> list[ProxyEvent]:
    """Return the Events that the entries of a delegate come to.

    By the mode Summary all that went as it should is one Event, the summary.
    """
    if reason := reasons.of(proxy):
        entries = [_with_reason(entry, reason) for entry in entries]

    normal = [entry for entry in entries if not entry.is_warning]
    single = [entry for entry in entries if entry.is_warning]
    if mode == "All":
        single, normal = entries, []
    elif mode == "Warnings":
        normal = []

    events = [_of(proxy, entry, target, entry.key, now=now) for entry in single]
    if normal:
        summary = _of(proxy, _summary(normal), target, (NORMAL, "", ""), now=now)
        events.insert(0, replace(summary, is_summary=True))

    return events


def state_of(event: Object) -> tuple[str, int]:
    """Return `words` and `count` of an Event that exists."""
    return _words(str(event.get("message"))), event.get("count") or 1


def _words(message: str) -> str:
    """Return what two messages have in common if the later one is no news."""
    parts = event_record.without_numbers(message).split(_SEPARATOR)
    return _SEPARATOR.join(sorted(parts))


def _with_reason(entry: EventEntry, reason: str) -> EventEntry:
    """Add to the Event that says where the delegate was scheduled why it is in that cluster."""
    if entry.reason != _SCHEDULED or entry.is_warning:
        return entry

    message = f"{entry.message}{_SEPARATOR}{reason}"
    return replace(entry, message=message[: events.MESSAGE_LIMIT])


def _summary(entries: list[EventEntry]) -> EventEntry:
    """Join entries to one in the name of the last, in whose message each says its reason."""
    ordered = sorted(entries, key=lambda entry: entry.first)
    last = ordered[-1]
    # Of several containers the latest one's words, as if they were one.
    words = {entry.key[:_WORDS]: f"{entry.reason}: {entry.message}" for entry in ordered}
    return replace(
        last,
        message=_SEPARATOR.join(words.values())[: events.MESSAGE_LIMIT],
        count=1,
        field_path="",
        first=ordered[0].first,
        last=max(entry.last for entry in entries),
    )


def _of(
    proxy: Object, entry: EventEntry, target: str, identity: tuple[str, ...], *, now: datetime
) -> ProxyEvent:
    text = "\n".join((objects.uid(proxy), target, *identity))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    name = f"{objects.name(proxy)[:_NAME_ROOM].rstrip('.-')}.{digest}"
    source = {"component": f"{target}/{entry.component}"}
    if entry.host:
        source["host"] = f"{target}/{entry.host}"

    about = events.about(proxy)
    if entry.field_path:
        about["fieldPath"] = entry.field_path

    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": objects.namespace(proxy)},
        "involvedObject": about,
        "type": entry.type,
        "reason": entry.reason,
        "message": entry.message,
        "count": entry.count,
        "firstTimestamp": objects.timestamp(min(entry.first, now)),
        "lastTimestamp": objects.timestamp(min(entry.last, now)),
        "source": source,
        "reportingComponent": REPORTER,
        "reportingInstance": target,
    }
    return ProxyEvent(name, body, _words(entry.message), entry.count, entry.last)
