"""The time of one API server, estimated from the answers that it gives anyway.

An API server writes its own time on objects: when a pod was created, when it was deleted. Whoever
compares that with a clock of another machine, which is ahead by ten minutes, takes all for ten
minutes older than it is, and ends what was to run on. Each answer carries the server's time to the
second (`Date`), and was given between the request and its arrival; so each answer bounds by how
much the clocks differ, and the estimate is moved no further than into those bounds. Clocks that
agree to the second are left alone.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Final

from vnode.api.clock import Clock

FARTHEST: Final = 10 * 365 * 24 * 3600.0
"""Seconds that a clock may be ahead or behind: what is computed with it stays in the calendar."""
_RESOLUTION: Final = 1.0  # seconds: those of a Date are cut off


@lru_cache(maxsize=16)  # a server says the same for a second, in many answers
def seconds_of(date: str) -> float | None:
    """Return the Unix time of a header Date; None if that is none."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


class ClockSkew:
    """By how many seconds an API server's clock is ahead of this machine's, as far as known."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def observe(self, date: str | None, sent: float, received: float) -> None:
        """Take note of an answer's header Date; `sent` and `received` are this machine's time."""
        if (told := seconds_of(date or "")) is None:
            return  # no date, or not by the rules: it tells nothing

        told = min(max(told, received - FARTHEST), received + FARTHEST)
        least, most = told - received, told + _RESOLUTION - sent
        if least <= most:  # else this machine's clock was set meanwhile
            self.seconds = min(max(self.seconds, least), most)


class ServerClock:
    """A clock whose `now` is that of an API server."""

    def __init__(self, clock: Clock, skew: ClockSkew) -> None:
        self._clock = clock
        self._skew = skew

    def now(self) -> datetime:
        """Return the API server's time, in UTC."""
        return self._clock.now() + timedelta(seconds=self._skew.seconds)

    def monotonic(self) -> float:
        """Return the seconds of this machine's monotonic clock."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after that many seconds."""
        await self._clock.sleep(seconds)
