"""Says how long reports may wait of delegates that start as all pods do.

A kubelet writes three times until a pod runs: its containers are created, its sandbox is there,
they have started. A pod that starts alone is reported each time. Where many start at once they keep
each other waiting, and reports of their steps would be most of what vnode writes: then a step
waits, a little for each pod beside it, and goes with the start. What counts is how many there were
at most: when most have started, it is soon the turn of the others. The start, and whatever keeps a
container from starting, waits for nothing. The source knows that a pod is bound, so "bound" alone
waits for the first word about containers in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.pods.target import starting

BOUND: Final = 3.0  # seconds that "bound" alone waits
EACH: Final = 0.75  # seconds that a step waits for each other pod that starts meanwhile
MOST: Final = 30.0  # seconds from its binding in which a pod may wait, and counts for others


@dataclass(slots=True)
class _Start:
    """A delegate that starts; times are monotonic."""

    uid: str
    begun: float
    since: float  # when it began, or was last reported
    others: int = 0  # that were starting, at most, since then


class StartReports:
    """Keeps which delegates start, by the keys of their chaperons."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._starts: dict[str, _Start] = {}
        self._begun: dict[str, float] = {}  # when (monotonic), the oldest first; for MOST each

    def note(self, key: str, pod: Object) -> None:
        """Note the delegate as it is now."""
        if not starting.is_starting(pod):
            self.forget(key)
            return

        known = self._starts.get(key)
        if known is None or known.uid != objects.uid(pod):
            self.forget(key)
            self._begun[key] = now = self._clock.monotonic()
            self._starts[key] = _Start(objects.uid(pod), now, now)

    def forget(self, key: str) -> None:
        """Forget a delegate that has started, or is gone."""
        self._starts.pop(key, None)
        self._begun.pop(key, None)

    def left(self, chaperon: Object, pod: Object) -> float:
        """Return the seconds that a report may wait; 0 if it may not."""
        start = self._starts.get(objects.key(chaperon))
        if start is None or start.uid != objects.uid(pod) or starting.is_news(chaperon, pod):
            return 0.0

        now = self._clock.monotonic()
        start.others = max(start.others, self._others(now))
        wait = EACH * start.others
        if starting.is_bound_alone(pod):
            wait = max(wait, BOUND)

        left = min(start.since + wait, start.begun + MOST) - now
        return left if left > TICK else 0.0

    def written(self, key: str) -> None:
        """Note that a report was written: the next step waits from now on."""
        if (start := self._starts.get(key)) is not None:
            start.since, start.others = self._clock.monotonic(), 0

    def _others(self, now: float) -> int:
        """Count the delegates that start and began to within MOST, but for one."""
        while self._begun:
            oldest = next(iter(self._begun))
            if self._begun[oldest] + MOST > now:
                break

            del self._begun[oldest]

        return max(0, len(self._begun) - 1)
