"""Gives turns to pieces of work that use the same processor, one at a time, fairly by their keys.

What a piece of work costs is known only afterwards, and some cost a thousand times as much as
others. So each is charged to its key, by the time that it took, and `vnode.api.turns` says which of
the keys that wait is next. Whoever comes to a queue of others is next, however many of them wait.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

from vnode.api.turns import Turns

K = TypeVar("K", bound=Hashable)

_ROUND: Final = 0.005  # seconds by which one may be ahead of another who has just come
_STRETCH: Final = 0.001  # seconds of work until the loop looks who else has come
_PASSES: Final = 6  # of the loop then: to accept, to read, to parse and to ask for a turn take some


class FairTurns(Generic[K]):
    """Gives turns to one at a time; `spent` returns the seconds of CPU that were used so far."""

    def __init__(self, spent: Callable[[], float] = time.thread_time) -> None:
        self._spent = spent
        self._turns: Turns[K] = Turns(_ROUND)
        self._waiting: dict[K, deque[asyncio.Future[None]]] = {}  # no deque is empty
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
        await self._wait(key)
        begun = self._spent()
        try:
            yield
        finally:
            cost = spent_before + self._spent() - begun
            self._turns.pay(key, cost)
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

    async def _wait(self, key: K) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        self._turns.wait(key)
        self._give()
        if turn.done():
            return

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
        elif turn in self._waiting.get(key, ()):
            self._waiting[key].remove(turn)
            self._forget_if_none(key)

    def _give(self) -> None:
        """Give the turn to who is next, unless somebody has it."""
        while not self._is_taken and (key := self._turns.next()) is not None:
            turn = self._waiting[key].popleft()
            self._forget_if_none(key)
            if not turn.cancelled():  # else whoever waited will be told in a moment
                self._is_taken = True
                turn.set_result(None)

    def _forget_if_none(self, key: K) -> None:
        if not self._waiting[key]:
            del self._waiting[key]
            self._turns.leave(key)
