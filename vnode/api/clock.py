"""Time as an object that is passed in, so that a test can pass in another one.

`now` is for what people and other machines read, `monotonic` for every measurement and deadline:
wall clocks jump.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time."""

    def now(self) -> datetime:
        """Return the wall clock's time, in UTC."""

    def monotonic(self) -> float:
        """Return the seconds since some fixed moment; they never go back."""

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> datetime:
        """Return the wall clock's time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the seconds of the monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)


async def happens_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event, but no longer than that; return whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False

    return True
