"""Limits how often something is done: bursts pass, the average over time is bounded."""

from __future__ import annotations


class TokenBucket:
    """Holds `burst` tokens at most, and gets `rate` new ones a second; begins full."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)  # as of `_filled`, from 0 to `_burst`
        self._filled: float | None = None  # monotonic; None before the first `take`

    def take(self, now: float) -> bool:
        """Take a token; False if there is none at `now`, a moment of the monotonic clock."""
        if self._filled is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)

        self._filled = now
        if self._tokens < 1:
            return False

        self._tokens -= 1
        return True
