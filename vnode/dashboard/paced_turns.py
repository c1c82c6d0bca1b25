"""Has views and pages computed one at a time, and for a fifth of the time at most.

What is computed grows with the number of pods, and each open page asks for it at each change. It is
done in a thread, which shares one interpreter with the event loop, which has pods to schedule.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from vnode.api.clock import Clock

_PAUSE: Final = 4.0  # times what a computation has taken, until the next one begins


class PacedTurns:
    """Gives turns in the order in which they are asked for."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._free_at = float("-inf")  # monotonic

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn, which is the block."""
        async with self._lock:
            if (left := self._free_at - self._clock.monotonic()) > 0:
                await self._clock.sleep(left)

            begun = self._clock.monotonic()
            try:
                yield
            finally:
                now = self._clock.monotonic()
                self._free_at = now + _PAUSE * (now - begun)
