"""Sends spans in a thread: neither a slow collector nor one that is away holds up a pod.

Spans wait in memory, a bounded number of them; what is too much, or what the collector does not
take, is lost and counted. The log says once that a collector is away, and once that it is back.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, Full, Queue
from typing import Final

from vnode.telemetry import metrics, spans
from vnode.telemetry.spans import Attributes, Span

MOST_WAITING: Final = 32_768
"""Spans and their events together; some 20 MB. A span of a scheduling cycle may have 32 events."""
_BATCH: Final = 512
_GATHERED: Final = 1.0  # seconds for which spans are gathered before they are sent
_NO_WAIT: Final = 0.0
_LAST: Final = 3.0  # seconds that the end of an agent waits for the last spans to be sent

Export = Callable[[Attributes, Sequence[Span]], str]
"""Sends spans of the process that attributes describe; returns why it could not, "" if it could."""

log = logging.getLogger(__name__)


class _WaitingSpans(Queue[Span]):
    """Spans that wait, of which each takes room for itself and its events; at least one fits."""

    def _init(self, maxsize: int) -> None:
        super()._init(maxsize)
        self._size = 0  # of all that are in the queue; changed with its lock held

    def _qsize(self) -> int:
        return self._size

    def _put(self, item: Span) -> None:
        super()._put(item)
        self._size += _size_of(item)

    def _get(self) -> Span:
        item = super()._get()
        self._size -= _size_of(item)
        return item


def _size_of(span: Span) -> int:
    return 1 + len(span.events)


class SpanSender:
    """Takes spans of the pods that are traced, and never waits."""

    def __init__(self, export: Export, ratio: float, most: int = MOST_WAITING) -> None:
        self._export = export
        self._ratio = ratio
        self._waiting = _WaitingSpans(most)
        self._stopping = threading.Event()
        self._is_away = False

    def is_traced(self, uid: str) -> bool:
        """Tell whether spans of the pod with that UID, in its source, are wanted."""
        return spans.is_sampled(uid, self._ratio)

    def put(self, span: Span) -> None:
        """Have a span sent, unless too many wait."""
        try:
            self._waiting.put_nowait(span)
        except Full:
            metrics.SPANS.labels("dropped").inc()

    async def run(self, resource: Attributes) -> None:
        """Send spans until cancelled, as those of the process that `resource` describes."""
        thread = threading.Thread(
            target=self._send_all, args=(resource,), name="spans", daemon=True
        )
        thread.start()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._stopping.set()
            await asyncio.to_thread(thread.join, _LAST)

    def _send_all(self, resource: Attributes) -> None:
        while not (self._stopping.is_set() and self._waiting.empty()):
            if batch := self._next_batch():
                self.send(resource, batch)

    def _next_batch(self) -> list[Span]:
        """Wait for spans for a while, and return those that have come, at most a batch of them."""
        batch: list[Span] = []
        until = time.monotonic() + _GATHERED
        while len(batch) < _BATCH:
            left = until - time.monotonic()
            try:
                wait = _NO_WAIT if self._stopping.is_set() else max(0.0, left)
                batch.append(self._waiting.get(timeout=wait))
            except Empty:
                break

        return batch

    def send(self, resource: Attributes, batch: Sequence[Span]) -> None:
        """Send spans now; count them, and say so if the collector's state has changed."""
        try:
            failure = self._export(resource, batch)
        except Exception as error:  # noqa: BLE001 # of a library: no thread may end by it
            failure = f"{type(error).__name__}: {error}"

        metrics.SPANS.labels("unsent" if failure else "sent").inc(len(batch))
        if failure and not self._is_away:
            log.warning(
                "the collector of traces takes no spans, which are lost meanwhile: %s", failure
            )
        elif self._is_away and not failure:
            log.info("the collector of traces takes spans again")

        self._is_away = bool(failure)
