"""Bounds the share of the processor that reviews of one namespace take.

Turns keep a pod from waiting for the reviews of others. But who creates costly pods without a pause
keeps the API server busy as well, which has no turns: there everybody's requests share two cores,
say, with his thirty. So a namespace whose reviews have taken more than its share goes on at the
pace of that share, one review at a time, and its callers wait here, where they cost nobody
anything. Reviews of ordinary pods take a tenth of a millisecond or two, and never come that far.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from vnode.api.clock import Clock
from vnode.api.token_bucket import TokenBuckets

SHARE: Final = 0.1
"""Seconds of reviews in a second, over time: some 500 ordinary pods."""
BURST: Final = 0.1
"""Seconds of reviews at once: some 500 ordinary pods, or twenty of 200 kB, which cost API servers
three times as much as they cost here."""


@dataclass(slots=True)
class _Line:
    """The reviews of one namespace that wait, or are answered."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    length: int = 0


class ReviewBudget:
    """The time that reviews have taken, by namespace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: TokenBuckets[str] = TokenBuckets(BURST)
        self._lines: dict[str, _Line] = {}  # none empty

    def waiting(self, namespace: str) -> int:
        """Count the reviews of a namespace that wait, or are answered."""
        line = self._lines.get(namespace)
        return line.length if line else 0

    @asynccontextmanager
    async def wait(self, namespace: str) -> AsyncIterator[None]:
        """Wait until the namespace may have the review answered that is in the block."""
        line = self._lines.setdefault(namespace, _Line())
        line.length += 1
        try:
            async with line.lock:
                now = self._clock.monotonic()
                if wait := self._buckets.of(namespace, SHARE, now).reserve(now, 0.0):
                    await self._clock.sleep(wait)

                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[namespace]

    def charge(self, namespace: str, seconds: float) -> None:
        """Note what a review has taken."""
        now = self._clock.monotonic()
        self._buckets.of(namespace, SHARE, now).reserve(now, seconds)
