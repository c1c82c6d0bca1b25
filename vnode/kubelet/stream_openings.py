"""Has logs and streams of each namespace opened at a bounded rate.

Opening one costs two API servers more than what is read from it most often: who opened the log of
one pod on fifty connections, again and again, had everybody's pods and logs wait. Those beyond the
rate wait here, where a connection costs next to nothing, and so slow down who asks for them.
"""

from __future__ import annotations

from typing import Final

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


class StreamOpenings:
    """Says when a log or stream may be opened, for all virtual nodes of a process together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: TokenBuckets[str] = TokenBuckets(BURST)
        self._waits = turn_waits.of("logs and streams")

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
