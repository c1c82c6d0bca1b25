"""Lets some pieces of work be under way at once, and has those who wait take turns by their keys.

A semaphore serves who came first: behind a thousand requests of one namespace everybody waits for
all of them. Here the key that has paid least is next (`vnode.api.turns`), so that whoever comes to
a queue of others waits for one slot at most.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

from vnode.api.turns import Turns

K = TypeVar("K", bound=Hashable)


class FairSlots(Generic[K]):
    """Holds `limit` slots, for keys that may pay `allowance` ahead of another who has just come.

    `waited` is called with each key that gets a slot, and the seconds that it has waited.
    """

    def __init__(
        self,
        limit: int,
        allowance: float = 1.0,
        waited: Callable[[K, float], None] = lambda _key, _seconds: None,
    ) -> None:
        self._free = limit
        self._waited = waited
        self._turns: Turns[K] = Turns(allowance)
        self._waiting: dict[K, deque[asyncio.Future[None]]] = {}  # no deque is empty

    def waiting(self, key: K) -> int:
        """Count the pieces of work of a key that wait."""
        return len(self._waiting.get(key, ()))

    @asynccontextmanager
    async def take(self, key: K) -> AsyncIterator[None]:
        """Wait for a slot, and have it within the block; each costs the same."""
        await self.acquire(key)
        self.pay(key, 1.0)
        try:
            yield
        finally:
            self.release()

    async def acquire(self, key: K, rank: int = 0) -> None:
        """Wait for a slot, which is the caller's until `release`; lower ranks go first."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        self._turns.wait(key, rank)
        self._give()
        if turn.done():
            return

        asked = time.monotonic()
        try:
            await turn
        except asyncio.CancelledError:
            self._leave(key, turn)
            raise

        self._waited(key, time.monotonic() - asked)

    def release(self) -> None:
        """Give a slot back."""
        self._free += 1
        self._give()

    def pay(self, key: K, cost: float) -> None:
        """Note what a slot has cost a key."""
        self._turns.pay(key, cost)

    def _leave(self, key: K, turn: asyncio.Future[None]) -> None:
        """Give up a slot that is waited for, or was given a moment ago."""
        if turn.done() and not turn.cancelled():
            self.release()
        elif turn in self._waiting.get(key, ()):
            self._waiting[key].remove(turn)
            self._forget_if_none(key)

    def _give(self) -> None:
        """Give free slots to who is next."""
        while self._free and (key := self._turns.next()) is not None:
            turn = self._waiting[key].popleft()
            self._forget_if_none(key)
            if not turn.cancelled():  # else whoever waited will be told in a moment
                self._free -= 1
                turn.set_result(None)

    def _forget_if_none(self, key: K) -> None:
        if not self._waiting[key]:
            del self._waiting[key]
            self._turns.leave(key)
