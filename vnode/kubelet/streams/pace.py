"""Bounds how many bytes a second the streams of each namespace carry together.

Bytes of exec, attach and port-forward pass through two API servers and the agent's event loop, and
cost each of them. Ten commands that write without a pause took all the processor that there was,
and everybody else's pods started eight times later. A namespace gets half of what a gigabit network
carries, which is more than a user notices; beyond, its streams are read more slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from vnode.api.clock import Clock
from vnode.api.token_bucket import TokenBuckets
from vnode.telemetry import turn_waits

RATE: Final = 64.0 * 1024 * 1024
"""Bytes of the streams of a namespace in a second: in this process, a fifth of a core."""
BURST: Final = 64 * 1024 * 1024
"""Those that pass at once."""

Pace = Callable[[int], float]
"""Is told of bytes that a stream has read; returns for how many seconds it is to read no more."""


class StreamPaces:
    """Has a pace for the streams of each namespace, for all virtual nodes of a process together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: TokenBuckets[str] = TokenBuckets(BURST)
        self._waits = turn_waits.of("bytes of streams")

    def of(self, namespace: str) -> Pace:
        """Return the pace of a stream of a namespace."""
        return partial(self._read, namespace)

    def _read(self, namespace: str, size: int) -> float:
        now = self._clock.monotonic()
        wait = self._buckets.of(namespace, RATE, now).reserve(now, size)
        if wait:
            self._waits.note(namespace, wait)

        return wait
