"""Remembers the least of what was measured of late: what something takes while nobody waits for it.

What took long ago no longer counts, since a way may have become longer, or a machine slower.
"""

from __future__ import annotations

import math


class RecentLeast:
    """The least value of the last `seconds`, and of up to as many before them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = -math.inf  # when `_least` began, of the monotonic clock
        self._least = math.inf  # since then
        self._earlier = math.inf  # of the `seconds` before

    def note(self, value: float, now: float) -> float:
        """Note a value; return the least."""
        if (passed := now - self._since) >= self._seconds:
            self._earlier = self._least if passed < 2 * self._seconds else math.inf
            self._least = math.inf
            self._since = now

        self._least = min(self._least, value)
        return min(self._least, self._earlier)
