"""Does a piece of work again whenever somebody asks for it, in a quarter of the time at most.

A round does all that was asked for until it began; what comes meanwhile is for the next one.
Whoever waits, waits for what was asked for until then: others may go on to ask without an end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from vnode.api.clock import Clock

_PAUSE: Final = 3.0  # times as long as a round has taken, until the next one


class WorkRounds:
    """Calls `work`, which is to take what it has to do as it begins."""

    def __init__(self, work: Callable[[], Awaitable[None]], clock: Clock) -> None:
        self._work = work
        self._clock = clock
        self._asked = self._done = 0  # times that it was asked for, and how many of these are done
        self._woken = asyncio.Event()
        self._ended = asyncio.Event()  # set when a round has ended

    def ask(self) -> None:
        """Have the work done soon."""
        self._asked += 1
        self._woken.set()

    async def done(self) -> None:
        """Return once all has been done that was asked for until now."""
        wanted = self._asked
        while self._done < wanted:
            self._ended.clear()
            await self._ended.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            began, asked = self._clock.monotonic(), self._asked
            await self._work()
            self._done = asked
            self._ended.set()
            await self._clock.sleep(_PAUSE * (self._clock.monotonic() - began))
