"""Limits how often something is done: bursts pass, the average over time is bounded."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class TokenBucket:
    """Holds `burst` tokens at most, and gets `rate` new ones a second; begins full.

    Times are moments of the monotonic clock.
    """

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)  # as of `_filled`; less than 0: taken before they are there
        self._filled: float | None = None  # None before the first use

    def set_rate(self, rate: float, now: float) -> None:
        """Get so many tokens a second from now on; those that are there stay."""
        if rate != self._rate:
            self.wait(now)
            self._rate = rate

    def take(self, now: float) -> bool:
        """Take a token; False if there is none at `now`."""
        if self.wait(now) > 0:
            return False

        self._tokens -= 1
        return True

    def wait(self, now: float) -> float:
        """Return the seconds until a token can be taken; it is left there."""
        if self._filled is not None:
            passed = max(0.0, now - self._filled)  # of an event loop of a test, time may begin anew
            self._tokens = min(self._burst, self._tokens + passed * self._rate)

        self._filled = now
        return max(0.0, (1 - self._tokens) / self._rate)

    def is_full(self, now: float) -> bool:
        """Tell whether all tokens are there: then there is nothing to remember."""
        self.wait(now)
        return self._tokens >= self._burst

    def reserve(self, now: float, tokens: float = 1.0) -> float:
        """Take tokens, also some that are not there yet; return the seconds until they are."""
        self.wait(now)
        self._tokens -= tokens
        return max(0.0, -self._tokens / self._rate)


class MinuteLimits(Generic[K]):
    """Limits how often a minute something is done, for each key, by a number that may change.

    Whatever changes beside it, or the number itself, gives nobody a token: a limit goes on for as
    long as it has anything to remember.
    """

    def __init__(self, burst: int = 1) -> None:
        self._burst = burst
        self._buckets: dict[K, TokenBucket] = {}  # no full ones for long

    def take(self, key: K, per_minute: int, now: float) -> bool:
        """Take a token; False if there is none at `now`."""
        return self._bucket(key, per_minute, now).take(now)

    def wait(self, key: K, per_minute: int, now: float) -> float:
        """Return the seconds until a token can be taken; it is left there."""
        return self._bucket(key, per_minute, now).wait(now)

    def _bucket(self, key: K, per_minute: int, now: float) -> TokenBucket:
        if key not in self._buckets:
            full = [other for other, bucket in self._buckets.items() if bucket.is_full(now)]
            for other in full:
                del self._buckets[other]

        bucket = self._buckets.setdefault(key, TokenBucket(per_minute / 60, self._burst))
        bucket.set_rate(per_minute / 60, now)
        return bucket
