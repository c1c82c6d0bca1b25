"""Bounds the share of time that attempts of one namespace take that fail.

A pod that no target takes is tried again and again. With thousands of them, or with costly
constraints, these attempts would take all the time that there is, and everything else in the agent
would be late. So the time of failed attempts is counted by namespace; what exceeds the budget is
added to the back-off of the pods that fail then. Attempts that end with a node count nothing.
"""

from __future__ import annotations

from typing import Final

from vnode.api.token_bucket import TokenBuckets

SHARE: Final = 0.25
"""Seconds of failed attempts in a second, over time."""

BURST: Final = 5.0
"""Seconds of failed attempts at once."""


class RetryBudget:
    """The time of failed attempts by namespace. Moments are the clock's monotonic seconds."""

    def __init__(self) -> None:
        self._buckets: TokenBuckets[str] = TokenBuckets(BURST)

    def wait(self, namespace: str, seconds: float, now: float) -> float:
        """Count a failed attempt; return for how many seconds its pod is to wait at least."""
        return self._buckets.of(namespace, SHARE, now).reserve(now, seconds) if seconds else 0.0
