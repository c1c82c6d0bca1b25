"""What unit tests share: time that passes only when everybody waits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class LoopClock:
    """The clock of the event loop, which looptime moves on without waiting."""

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@pytest.fixture
def clock() -> LoopClock:
    return LoopClock()
