"""Lines of a pod's story: what each chapter consists of, whoever tells it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from vnode.api.objects import Object


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened `at` an API timestamp, or that still holds ("")."""

    text: str
    at: str = ""


def times(event: Object) -> str:
    """Return how often an Event has been repeated, as the end of a line; "" if it was not."""
    count = int(event.get("count") or 1)
    return f", {count} times since {event.get('firstTimestamp')}" if count > 1 else ""
