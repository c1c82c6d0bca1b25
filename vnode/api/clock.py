"""Time as an object that is handed in, so that a test can hand in another one.

`now` is for what people and other machines read, `monotonic` for every measurement and deadline:
wall clocks jump.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Final, Protocol

TICK: Final = 0.001
"""Seconds; shorter waits may end before the clock has moved."""


class Clock(Protocol):
    """Where time comes from."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """The wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """The monotonic clock, in seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)


async def happens_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event, but not for longer than that; whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False

    return True
