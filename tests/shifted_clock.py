"""A clock that is ahead of another one: things are due though nobody waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from vnode.api.clock import Clock


@dataclass
class ShiftedClock:
    """Shows a time that is so many seconds ahead; waits take as long as ever."""

    clock: Clock
    ahead: float

    def now(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        return self.clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
