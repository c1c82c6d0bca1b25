"""Says how many of something may be unanswered at once, by how the last ones were answered.

Whoever gets good answers may have as many as a burst takes; with each bad one half as many, with
each good one twice as many again. Who is not heard of yet begins with some, since as many as are
under way before the first answer may all be in vain.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class AnswerWindows(Generic[K]):
    """A number from `fewest` to `most` for each key; `first` for those not heard of."""

    def __init__(self, most: int, fewest: int, first: int) -> None:
        self._most = most
        self._fewest = fewest
        self._first = first
        self._limits: dict[K, int] = {}

    def of(self, key: K) -> int:
        """Return how many of a key may be unanswered at once."""
        return self._limits.get(key, self._first)

    def note(self, key: K, *, is_good: bool) -> None:
        """Note how one was answered."""
        limit = self.of(key)
        self._limits[key] = min(limit * 2, self._most) if is_good else max(limit // 2, self._fewest)

    def forget(self, key: K) -> None:
        """Begin anew with a key."""
        self._limits.pop(key, None)
