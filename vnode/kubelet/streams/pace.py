"""Bounds how many bytes a second the streams and logs of each namespace carry together.

Bytes of exec, attach, port-forward and logs pass through two API servers and the agent's event
loop, and cost each of them. Ten commands that write without a pause took all the processor that
there was, and everybody else's pods started eight times later. One stream at a time is read as fast
as a gigabit network carries it, since who copies a large file is no attacker. Streams that are busy
at once share a quarter of that: what is read of another stream than before counts four times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.token_bucket import TokenBuckets
from vnode.telemetry import turn_waits

RATE: Final = 128.0 * 1024 * 1024
"""Bytes of one stream of a namespace in a second."""
BURST: Final = 64 * 1024 * 1024
"""Those that pass at once."""
ALTERNATING: Final = 4
"""For how many bytes one counts that follows those of another stream."""

Pace = Callable[[int], float]
"""Is told of bytes that a stream has read; returns for how many seconds it is to read no more."""


async def go_on(wait: float) -> None:
    """Let others have their turn, and then for as many seconds as a pace says."""
    await asyncio.sleep(wait if wait > TICK else 0)


class StreamPaces:
    """Has the paces of all streams of a process, by namespace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: TokenBuckets[str] = TokenBuckets(BURST)
        self._last: WeakValueDictionary[str, _StreamPace] = WeakValueDictionary()
        self._waits = turn_waits.of("bytes of streams")

    def of(self, namespace: str) -> Pace:
        """Return the pace of another stream of a namespace."""
        return _StreamPace(self, namespace).read

    def charge(self, stream: _StreamPace, size: int) -> float:
        """Note what a stream has read; return for how many seconds it is to read no more."""
        now, namespace = self._clock.monotonic(), stream.namespace
        weight = 1 if self._last.get(namespace, stream) is stream else ALTERNATING
        self._last[namespace] = stream
        wait = self._buckets.of(namespace, RATE, now).reserve(now, weight * size)
        if wait:
            self._waits.note(namespace, wait)

        return wait


class _StreamPace:
    """One stream, which its tunnel keeps."""

    def __init__(self, paces: StreamPaces, namespace: str) -> None:
        self.namespace = namespace
        self._paces = paces

    def read(self, size: int) -> float:
        """Note what was read; see `Pace`."""
        return self._paces.charge(self, size)
