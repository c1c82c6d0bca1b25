"""Judges from another thread whether an event loop still does its work.

The loop tells that it runs, once in a while. It may stand still for a while: a list of thousands of
objects takes its time. It may also run again and again for a moment only, between long callbacks,
so that everything in it comes too late; so its delays are added up over a window, too.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

STALL_TIMEOUT: Final = 60.0
"""Seconds that the loop of the work may stand still before its leadership is given up.

A liveness probe with Kubernetes' defaults ends the process sooner.
"""

_BEATS: Final = 60  # in that time
_WINDOW: Final = 5  # times the timeout
_SHARE: Final = 0.8  # of the window: callbacks that take five times as long as a beat, all the time


class StallGuard:
    """Counts the beats of a loop. One thread calls `run` and `restart`, others ask."""

    def __init__(
        self, timeout: float = STALL_TIMEOUT, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._timeout = timeout
        self._period = timeout / _BEATS
        self._monotonic = monotonic
        self._delays: deque[tuple[float, float]] = deque()  # when a beat came, how late it was
        self._late = 0.0  # their sum; one value, which other threads can read at any time
        self._seen = monotonic()

    async def run(self) -> None:
        """Note that the loop runs, on and on, until cancelled."""
        while True:
            self.beat()
            await asyncio.sleep(self._period)

    def restart(self) -> None:
        """Forget former delays: other work begins."""
        self._delays.clear()
        self._late = 0.0
        self.beat()

    def beat(self) -> None:
        """Note that the loop runs now."""
        now = self._monotonic()
        self._delays.append((now, self._delay(now)))
        while self._delays[0][0] <= now - _WINDOW * self._timeout:
            self._delays.popleft()

        self._late = sum(delay for _, delay in self._delays)
        self._seen = now

    def runs(self) -> bool:
        """Tell whether the loop has neither stood still, nor been late nearly all the time."""
        delay = self._delay(self._monotonic())
        return delay < self._timeout and self._late + delay < _SHARE * _WINDOW * self._timeout

    def ran_within(self, seconds: float) -> bool:
        """Tell whether the loop has run at least once in that time."""
        return self._monotonic() - self._seen < seconds

    def _delay(self, now: float) -> float:
        return max(0.0, now - self._seen - self._period)
