"""Bounds the share of time that attempts of one namespace take that fail.

A pod that no target takes is tried again and again. With thousands of them, or with costly
constraints, these attempts would take all the time that there is, and everything else in the agent
would be late. So the time of failed attempts is counted by namespace; what exceeds the budget is
added to the back-off of the pods that fail then. Attempts that end with a node count nothing.

A candidate that is made anew, since its pod was changed, costs the target's API server and
scheduler much more than that: it counts as well. Whoever may edit pods that fit nowhere would
otherwise have each change carried to all targets.
"""

from __future__ import annotations

from typing import Final

from vnode.api.token_bucket import TokenBuckets
from vnode.scheduling.queued_pod import QueuedPod

SHARE: Final = 0.25
"""Seconds of failed attempts in a second, over time."""

BURST: Final = 5.0
"""Seconds of failed attempts at once."""

REMADE: Final = 0.05
"""Seconds for which a candidate that was made anew counts, about what it takes of a processor."""


class RetryBudget:
    """The time of failed attempts by namespace. Moments are the clock's monotonic seconds."""

    def __init__(self) -> None:
        self._buckets: TokenBuckets[str] = TokenBuckets(BURST)

    def wait(self, queued: QueuedPod, now: float) -> float:
        """Count a failed attempt; return for how many seconds its pod is to wait at least."""
        seconds = queued.cycle_seconds + REMADE * queued.remade
        bucket = self._buckets.of(queued.namespace, SHARE, now)
        return bucket.reserve(now, seconds) if seconds else 0.0
