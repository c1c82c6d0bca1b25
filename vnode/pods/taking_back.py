"""Takes back, little by little, what was said on streams that have ended.

A stream may have been about thousands of candidates, each of which has subscribers. Until it is
their turn they show what was said; nothing is decided by that which would not have been a moment
before the end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from vnode.api.clock import Clock
from vnode.api.slices import in_slices


class TakingBack:
    """Iterates over what is added, the oldest first; each step takes something back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: deque[Iterator[None]] = deque()  # the first may be under way
        self._woken = asyncio.Event()

    def add(self, steps: Iterator[None]) -> None:
        """Take the steps soon."""
        self._waiting.append(steps)
        self._woken.set()

    def finish(self) -> None:
        """Take all steps that are left, at once."""
        for _ in self._steps():
            pass

    async def run(self) -> None:
        """Work until cancelled; what is left then is for `finish`."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            async for _ in in_slices(self._steps(), self._clock):
                pass

    def _steps(self) -> Iterator[None]:
        while self._waiting:
            yield from self._waiting[0]
            self._waiting.popleft()
