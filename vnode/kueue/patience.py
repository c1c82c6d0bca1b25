"""Decides for how long a workload without room is looked at again before it is told to retry.

Quota is often given back before the room that came with it: a target reports once a second, and
Kueue gives the quota of Jobs and single pods back as soon as these are told to end. A workload that
has preempted others would lose the quota to them again if it were told to retry at once. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SETTLING: Final = 5.0
"""Seconds for which room is waited for: targets report once a second, and pods take time to end."""
ENDING: Final = 120.0
"""Seconds for which it is waited for at most while pods end that leave it."""
STARTING: Final = 30.0
"""Seconds for which it is waited for while some target is not connected yet."""


@dataclass(slots=True)
class _Wait:
    """A workload for which there was no room at first; moments are monotonic."""

    since: float
    ending_until: float = 0.0
    """Until when it waits because pods were ending that leave room."""


class Patience:
    """Knows which workloads are waiting, by their keys, and since when."""

    def __init__(self) -> None:
        self._waits: dict[str, _Wait] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._waits)

    def left(self, key: str, now: float, *, all_known: bool, is_soon: bool) -> float:
        """Return the seconds until a workload is to be looked at again; 0 if it has waited enough.

        `all_known` if all targets are connected, `is_soon` while pods end that leave room.
        """
        wait = self._waits.setdefault(key, _Wait(now))
        if is_soon:
            wait.ending_until = min(now + SETTLING, wait.since + ENDING)

        patience = SETTLING if all_known else STARTING
        left = max(0.0, wait.since + patience - now, wait.ending_until - now)
        # When pods do not end any more, there is time left for the target's report.
        return min(left, SETTLING / 2) if is_soon else left

    def forget(self, key: str) -> None:
        """Drop a workload that was answered, or is gone."""
        self._waits.pop(key, None)
