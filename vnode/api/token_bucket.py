"""Limits how often something is done: bursts pass, the average over time is bounded."""

from __future__ import annotations

from collections.abc import Hashable, ItemsView
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_FEW: Final = 128  # buckets that are kept without looking whether they have to be


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

    def set_burst(self, burst: float) -> None:
        """Hold so many tokens at most from now on; none is added."""
        self._burst = burst

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


class TokenBuckets(Generic[K]):
    """Holds a bucket for each key, and forgets full ones: there is nothing to remember of them."""

    def __init__(self, burst: float) -> None:
        self._burst = burst
        self._buckets: dict[K, TokenBucket] = {}
        self._remembered = _FEW  # buckets from which on full ones are dropped

    def of(self, key: K, rate: float, now: float) -> TokenBucket:
        """Return the bucket of a key, which gets so many tokens a second from now on."""
        if key not in self._buckets and len(self._buckets) >= self._remembered:
            self._buckets = {k: each for k, each in self._buckets.items() if not each.is_full(now)}
            self._remembered = max(_FEW, 2 * len(self._buckets))

        bucket = self._buckets.setdefault(key, TokenBucket(rate, self._burst))
        bucket.set_rate(rate, now)
        return bucket

    def items(self) -> ItemsView[K, TokenBucket]:
        """Return the buckets that are not forgotten."""
        return self._buckets.items()


class MinuteLimits(Generic[K]):
    """Limits how often a minute something is done, for each key, by a number that may change.

    Whatever changes beside it, or the number itself, gives nobody a token: a limit goes on for as
    long as it has anything to remember. Who asks once in `interval` seconds gets what is due then.
    """

    def __init__(self, burst: int = 1, *, interval: float = 0.0) -> None:
        self._burst = burst
        self._interval = interval
        self._buckets: TokenBuckets[K] = TokenBuckets(burst)

    def take(self, key: K, per_minute: int, now: float) -> bool:
        """Take a token; False if there is none at `now`."""
        return self._bucket(key, per_minute, now).take(now)

    def wait(self, key: K, per_minute: int, now: float) -> float:
        """Return the seconds until a token can be taken; it is left there."""
        return self._bucket(key, per_minute, now).wait(now)

    def _bucket(self, key: K, per_minute: int, now: float) -> TokenBucket:
        bucket = self._buckets.of(key, per_minute / 60, now)
        bucket.set_burst(max(self._burst, per_minute / 60 * self._interval))
        return bucket
