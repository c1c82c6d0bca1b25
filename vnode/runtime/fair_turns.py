"""Gives turns to pieces of work that use the same processor, one at a time, fairly by their keys.

What a piece of work costs is known only afterwards, and some cost a thousand times as much as
others. So each is charged to its key, and the next turn goes to the waiting key that has cost least
since it began to wait: start-time fair queueing. Whoever comes after a pause begins where the
others are, and so is next, however many pieces of the others wait. While nobody else waits, a key
may have all turns.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_STRETCH: Final = 0.001  # seconds of work until the loop looks who else has come
_PASSES: Final = 6  # of the loop then: to accept, to read, to parse and to ask for a turn take some
_FORGOTTEN: Final = 1_000  # keys that are charged, before those that owe nothing are forgotten


class FairTurns(Generic[K]):
    """Gives turns to one at a time; `spent` returns the seconds of CPU that were used so far."""

    def __init__(self, spent: Callable[[], float] = time.thread_time) -> None:
        self._spent = spent
        self._waiting: dict[K, deque[asyncio.Future[None]]] = {}  # no deque is empty
        self._charged: dict[K, float] = {}  # of keys, in the time of `_present`
        self._present = 0.0  # what the key whose turn was last had been charged before
        self._is_taken = False
        self._at_a_stretch = 0.0  # what turns have cost since the loop looked

    def waiting(self, key: K) -> int:
        """Count the pieces of work of a key that wait."""
        return len(self._waiting.get(key, ()))

    @asynccontextmanager
    async def take(self, key: K, *, spent_before: float = 0.0) -> AsyncIterator[None]:
        """Wait for a turn, and have it within the block, which must not wait for anything itself.

        What the block costs is charged to the key, with what the work has cost before.
        """
        if self._is_taken or self._waiting:
            await self._wait(key)
        else:
            self._begin(key)

        begun = self._spent()
        try:
            yield
        finally:
            cost = spent_before + self._spent() - begun
            self._charged[key] += cost
            self._at_a_stretch += cost
            self._end(_PASSES if self._at_a_stretch > _STRETCH else 0)

    def _end(self, passes: int) -> None:
        """End the turn after so many passes of the loop, in which others come in."""
        if passes:
            self._at_a_stretch = 0.0
            asyncio.get_running_loop().call_soon(self._end, passes - 1)
        else:
            self._is_taken = False
            self._give()

    def _begin(self, key: K) -> None:
        """Take the turn; a key that comes back after a pause begins where the others are."""
        self._charged[key] = max(self._charged.get(key, 0.0), self._present)
        self._present = self._charged[key]
        self._is_taken = True
        if len(self._charged) > _FORGOTTEN:
            self._forget(key)

    async def _wait(self, key: K) -> None:
        if key not in self._waiting:
            self._charged[key] = max(self._charged.get(key, 0.0), self._present)

        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        self._give()
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(key, turn)
            raise

    def _leave(self, key: K, turn: asyncio.Future[None]) -> None:
        """Give up a turn that is waited for, or was given a moment ago."""
        if turn.done() and not turn.cancelled():
            self._is_taken = False
            self._give()
            return

        waiting = self._waiting.get(key)
        if waiting is not None and turn in waiting:
            waiting.remove(turn)
            if not waiting:
                del self._waiting[key]

    def _give(self) -> None:
        """Give the turn to who is next, unless somebody has it."""
        while self._waiting and not self._is_taken:
            key = min(self._waiting, key=self._charged.__getitem__)
            turn = self._waiting[key].popleft()
            if not self._waiting[key]:
                del self._waiting[key]

            if turn.cancelled():  # whoever waited will be told in a moment
                continue

            self._begin(key)
            turn.set_result(None)

    def _forget(self, present: K) -> None:
        """Forget keys that would begin at the present time anyway."""
        kept = (present, *self._waiting)
        self._charged = {
            key: charged
            for key, charged in self._charged.items()
            if charged > self._present or key in kept
        }
