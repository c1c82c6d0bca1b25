"""Has logs and streams of each namespace opened at a bounded rate, and so many of them be open.

Opening one costs two API servers more than what is read from it most often: who opened the log of
one pod on fifty connections, again and again, had everybody's pods and logs wait. Those beyond the
rate wait here, where a connection costs next to nothing, and so slow down who asks for them.

One that is open takes two connections, and what its reader has not taken yet. Whoever opens them
and reads nothing would fill the memory, so that the more a namespace has, the less each may hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.token_bucket import TokenBuckets
from vnode.kubelet.refusal import Refused
from vnode.telemetry import turn_waits

BURST: Final = 10
"""Logs and streams of a namespace that are opened at once. Fifty took two cores three seconds."""
RATE: Final = 20.0
"""Those that are opened in a second, over time."""
SIZE: Final = 64 * 1024
"""Bytes of a query for which it counts as one more."""
LONGEST: Final = 20.0
"""Seconds that one waits at most; what would wait longer is refused."""


MOST_OPEN: Final = 500
"""Logs and streams of a namespace that are open at once. Idle ones take a quarter of a MiB each."""
BUFFER: Final = 512 * 1024
"""Bytes that wait for one side of a log or stream to be read, before no more are taken for it."""
LARGE: Final = 32
"""Logs and streams of a namespace that may hold so many, each."""
SMALL_BUFFER: Final = 64 * 1024
"""Bytes that each further one may hold."""

BUFFERED: Final = web.RequestKey("buffered", int)
"""Under this a request for a log or stream has how many bytes it may hold."""


class StreamOpenings:
    """Says when a log or stream may be opened, for all virtual nodes of a process together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: Counter[str] = Counter()  # by namespace, those that wait included; no zeroes
        self._buckets: TokenBuckets[str] = TokenBuckets(BURST)
        self._waits = turn_waits.of("logs and streams")

    @contextmanager
    def counted(self, namespace: str) -> Iterator[int]:
        """Count one within the block, of which it yields how many bytes each side may hold.

        Raises Refused if the namespace has too many.
        """
        before = self._open[namespace]
        if before >= MOST_OPEN:
            raise Refused(
                429, f"{MOST_OPEN} logs and streams of namespace {namespace} are open: end some"
            )

        self._open[namespace] += 1
        try:
            yield BUFFER if before < LARGE else SMALL_BUFFER
        finally:
            self._open[namespace] -= 1
            if not self._open[namespace]:
                del self._open[namespace]

    async def wait(self, namespace: str, size: int = 0) -> None:
        """Return when it is time for one more; Refused if too many of the namespace wait.

        One counts for more by the bytes of its query: what takes a MiB in takes it out again.
        """
        now = self._clock.monotonic()
        bucket = self._buckets.of(namespace, RATE, now)
        if bucket.wait(now) > LONGEST:
            raise Refused(
                429,
                f"too many logs and streams of namespace {namespace} are being opened: open fewer "
                f"than {RATE:g} a second",
            )

        wait = bucket.reserve(now, 1 + size / SIZE)
        self._waits.note(namespace, wait)
        if wait > TICK:
            await self._clock.sleep(wait)
