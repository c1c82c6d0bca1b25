"""Describes the Events of a delegate pod as its chaperon's status carries them. No I/O.

The target's agent keeps a short list of them, in which Events about one container that differ only
in numbers are one entry, and writes it with the status of the delegate. The source's agent reads
the list and tells the Events on the proxy. Whoever may write Events in the target chooses their
words, so both agents bound every part and take out what a terminal would obey.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from vnode.api import objects
from vnode.api.objects import Object
from vnode.kube.events import NORMAL, WARNING

FIELD: Final = "vnodeEvents"
"""The field of a chaperon's status; a pod's status has none of that name."""

ENTRIES: Final = 20  # of one pod; one of three containers that starts has some ten
MESSAGE_LIMIT: Final = 200  # characters
_REASON_LIMIT: Final = 64
_NAME_LIMIT: Final = 128  # of a component, host or container with its field
_MOST: Final = 1_000_000  # occurrences that are told

_DIGITS: Final = re.compile(r"[0-9]+")

DelegateEventsMode: TypeAlias = Literal["Summary", "All", "Warnings", "None"]
"""Which Events of delegates are told on their proxies; the source's setting, and the target's."""


@dataclass(frozen=True, slots=True)
class EventEntry:
    """One Event of a delegate, or several that differ in numbers; the latest one's words.

    `field_path` names the container that it is about, as `spec.containers{NAME}`; "" for the pod.
    """

    type: str
    reason: str
    message: str
    count: int
    first: datetime
    last: datetime
    component: str
    host: str
    field_path: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What Events have in common that are one entry."""
        words = self.type, self.reason, without_numbers(self.message)
        return (*words, self.field_path) if self.field_path else words

    @property
    def is_warning(self) -> bool:
        """Whether something went wrong."""
        return self.type == WARNING


def without_numbers(message: str) -> str:
    """Return a message in which all numbers are the same: durations, addresses, ports, counts."""
    return _DIGITS.sub("0", message)


def of_event(event: Object) -> EventEntry | None:
    """Read an Event as API servers have it; None if there is nothing to tell.

    kube-scheduler writes Events of the newer API, whose fields other names stand for here.
    """
    source, series = event.get("source") or {}, event.get("series") or {}
    occurred = event.get("eventTime") or objects.created(event)
    return _entry(
        {
            "type": event.get("type"),
            "reason": event.get("reason"),
            "message": event.get("message"),
            "count": series.get("count") or event.get("count") or 1,
            "first": event.get("firstTimestamp") or occurred,
            "last": series.get("lastObservedTime") or event.get("lastTimestamp") or occurred,
            "component": source.get("component") or event.get("reportingComponent"),
            "host": source.get("host"),
            "field_path": (event.get("involvedObject") or {}).get("fieldPath"),
        }
    )


def read(status: Object) -> list[EventEntry]:
    """Read the list in a chaperon's status, the latest last; what cannot be read is left out."""
    found = status.get(FIELD)
    if not isinstance(found, list):
        return []

    entries = (_entry(item) for item in found[-ENTRIES:] if isinstance(item, dict))
    return [entry for entry in entries if entry is not None]


def write(entries: Iterable[EventEntry]) -> list[Object]:
    """Return the value of the field for a list of entries."""
    return [_written(entry) for entry in entries]


def _written(entry: EventEntry) -> Object:
    fields: Object = {
        **msgspec.to_builtins(entry),
        "first": objects.timestamp(entry.first),
        "last": objects.timestamp(entry.last),
    }
    if not entry.field_path:
        del fields["field_path"]  # as agents write it that do not know the field

    return fields


def _entry(raw: Object) -> EventEntry | None:
    type_, reason = raw.get("type"), _text(raw.get("reason"), _REASON_LIMIT)
    first, last = _moment(raw.get("first")), _moment(raw.get("last"))
    if type_ not in (NORMAL, WARNING) or not reason or last is None:
        return None

    count = raw.get("count")
    return EventEntry(
        type=str(type_),
        reason=reason,
        message=_text(raw.get("message"), MESSAGE_LIMIT),
        count=min(max(count, 1), _MOST) if isinstance(count, int) else 1,
        first=min(first or last, last),
        last=last,
        component=_text(raw.get("component"), _NAME_LIMIT),
        host=_text(raw.get("host"), _NAME_LIMIT),
        field_path=_text(raw.get("field_path"), _NAME_LIMIT),
    )


def _text(value: Any, limit: int) -> str:
    """Return a text of one line, without control characters and what reorders letters."""
    if not isinstance(value, str):
        return ""

    cut = value[: 4 * limit]  # before anything takes time
    words = " ".join("".join(c if c.isprintable() else " " for c in cut).split())
    return words if len(words) <= limit else f"{words[: limit - 3]}..."


def _moment(value: Any) -> datetime | None:
    found = objects.parse_timestamp(value) if isinstance(value, str) else None
    try:
        return found.astimezone(UTC).replace(microsecond=0) if found else None
    except OverflowError:  # at the ends of the calendar
        return None
