"""Limits how much is read of one API server that need not be honest, so that it starves no other.

All connections are read by one event loop. A target that sends valid events without end would keep
it busy: between two of its chunks others get their turn, but the processor is used up. So each
client has tokens for what its informers read; without any they stop to read, and the connection
fills up until the other side has to wait.
"""

from __future__ import annotations

import asyncio
from typing import Final

from vnode.api.durations import TICK
from vnode.api.token_bucket import TokenBucket

RATE: Final = 2000.0  # events of up to UNIT bytes a second: some 200 pods that start
BURST: Final = 20_000
UNIT: Final = 8192  # bytes; a larger event counts for more
WATCH: Final = 20.0  # events for which the beginning of a watch counts
LIST: Final = 1000.0  # and a list


async def unlimited(_events: float) -> None:
    """Do what `ReadLimiter.wait` does for a server that may send as much as it likes: nothing."""


class ReadLimiter:
    """Counts what is read of one API server."""

    def __init__(self) -> None:
        self._bucket = TokenBucket(RATE, BURST)

    async def wait(self, events: float) -> None:
        """Count so many events, and wait if there were too many."""
        wait = self._bucket.reserve(asyncio.get_running_loop().time(), events)
        if wait > TICK:
            await asyncio.sleep(wait)
