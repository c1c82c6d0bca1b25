"""Bounds the share of time that attempts of one namespace take that fail.

A pod that no target takes is tried again and again. With thousands of them, or with costly
constraints, these attempts would take all the time that there is, and everything else in the agent
would be late. So the time of failed attempts is counted by namespace; what exceeds the budget is
added to the back-off of the pods that fail then. Attempts that end with a node count nothing.
"""

from __future__ import annotations

from typing import Final

from vnode.api.token_bucket import TokenBucket

SHARE: Final = 0.25
"""Seconds of failed attempts in a second, over time."""

BURST: Final = 5.0
"""Seconds of failed attempts at once."""

_FEW: Final = 128  # namespaces that are remembered without looking whether they have to be


class RetryBudget:
    """The time of failed attempts by namespace. Moments are the clock's monotonic seconds."""

    def __init__(self) -> None:
        self._buckets: dict[str, TokenBucket] = {}
        self._remembered = _FEW  # buckets from which on full ones are dropped

    def wait(self, namespace: str, seconds: float, now: float) -> float:
        """Count a failed attempt; return for how many seconds its pod is to wait at least."""
        if not seconds:
            return 0.0

        if namespace not in self._buckets and len(self._buckets) >= self._remembered:
            found = self._buckets.items()
            self._buckets = {name: bucket for name, bucket in found if not bucket.is_full(now)}
            self._remembered = max(_FEW, 2 * len(self._buckets))

        bucket = self._buckets.setdefault(namespace, TokenBucket(SHARE, BURST))
        return bucket.reserve(now, seconds)

    def slowed(self, now: float) -> dict[str, float]:
        """Return the namespaces that have exceeded it, and the seconds that their pods wait."""
        waits = ((name, bucket.reserve(now, 0.0)) for name, bucket in self._buckets.items())
        return {name: wait for name, wait in waits if wait}
