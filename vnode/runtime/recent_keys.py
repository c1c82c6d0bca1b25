"""Remembers whether several did something of late: each may be bounded more than one alone."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class RecentKeys(Generic[K]):
    """Knows the last two keys that were noted, which are enough to tell of any other one."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last: tuple[K | None, float] = (None, -math.inf)  # moments are monotonic
        self._before: tuple[K | None, float] = (None, -math.inf)  # the last one of another key

    def note(self, key: K, now: float) -> None:
        """Note that a key did it."""
        if self._last[0] != key:
            self._before = self._last

        self._last = key, now

    def has_another(self, key: K, now: float) -> bool:
        """Tell whether another key did it in the last `seconds`."""
        _key, at = self._before if self._last[0] == key else self._last
        return now - at < self._seconds
