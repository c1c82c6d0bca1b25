"""Says how many of something may be unanswered at once, by how the last ones were answered.

Whoever gets good answers may have as many as a burst takes; with each bad one half as many, with
each good one twice as many again. Who is not heard of yet begins with some, since as many as are
under way before the first answer may all be in vain.

Where it is known how long an answer takes while nobody waits, a window follows that instead: what
is under way beyond what is being worked on waits, and has everybody who comes later wait as well,
and makes nothing faster (as TCP Vegas has it for the packets of a connection).
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
        self._limits: dict[K, float] = {}

    def begin(self, key: K, first: int) -> None:
        """Have a key that is not heard of begin with another number than usual."""
        self._limits.setdefault(key, first)

    def of(self, key: K) -> int:
        """Return how many of a key may be unanswered at once."""
        return int(self._limits.get(key, self._first))

    def note(self, key: K, *, is_good: bool) -> None:
        """Note how one was answered."""
        limit = self.of(key)
        self._limits[key] = min(limit * 2, self._most) if is_good else self._half(limit)

    def _half(self, limit: int) -> int:
        return min(limit, max(limit // 2, self._fewest))

    def note_time(self, key: K, took: float, least: float, waiting: int, among: int = 0) -> None:
        """Note a good answer that took so long, where one takes `least` while nobody waits.

        By Little's law, limit x least / took are being worked on; `waiting` may wait beyond them,
        so that there is always work. The window goes half of the way there, also to less than
        `fewest`: that is for bad answers. The limit that counts is that of then, or `among`, as
        many as were unanswered when it began: answers that come together do not each take away
        what those before them have taken away already.
        """
        limit = self._limits.get(key, self._first)
        aim = max(limit, among) * least / took + waiting if took else self._most
        self._limits[key] = max(1.0, min((limit + aim) / 2, self._most))

    def forget(self, key: K) -> None:
        """Begin anew with a key."""
        self._limits.pop(key, None)
