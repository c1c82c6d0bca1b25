"""Keeps spans in place of sending them."""

from __future__ import annotations

from vnode.telemetry.span_sender import SpanSender
from vnode.telemetry.spans import Span


class RecordedSpans(SpanSender):
    """Has what was told; several agents may have the same."""

    def __init__(self, ratio: float = 1.0) -> None:
        super().__init__(lambda _resource, _batch: "", ratio)
        self.told: list[Span] = []

    def put(self, span: Span) -> None:
        """Keep a span."""
        self.told.append(span)

    def by_name(self) -> dict[str, Span]:
        """Return the spans by their names, of which each was told once, in that order."""
        found = {span.name: span for span in self.told}
        assert len(found) == len(self.told)
        return found
