"""Gives turns to pieces of work that use the same processor, one at a time, fairly by their keys.

What a piece of work costs is known only afterwards, and some cost a thousand times as much as
others. So each is charged to its key, by the time that it took, and `vnode.api.turns` says which of
the keys that wait is next. Whoever comes to a queue of others is next, however many of them wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Final, Generic, TypeVar

from vnode.runtime.fair_slots import FairSlots

K = TypeVar("K", bound=Hashable)

_ROUND: Final = 0.005  # seconds by which one may be ahead of another who has just come
_STRETCH: Final = 0.001  # seconds of work until the loop looks who else has come
_PASSES: Final = 6  # of the loop then: to accept, to read, to parse and to ask for a turn take some


class FairTurns(Generic[K]):
    """Gives turns to one at a time; `spent` returns the seconds of CPU that were used so far.

    `waited` is called with each key that gets a turn, and the seconds that it has waited.
    """

    def __init__(
        self,
        spent: Callable[[], float] = time.thread_time,
        waited: Callable[[K, float], None] = lambda _key, _seconds: None,
    ) -> None:
        self._spent = spent
        self._slot: FairSlots[K] = FairSlots(1, _ROUND, waited)
        self._at_a_stretch = 0.0  # what turns have cost since the loop looked

    def waiting(self, key: K) -> int:
        """Count the pieces of work of a key that wait."""
        return self._slot.waiting(key)

    @asynccontextmanager
    async def take(self, key: K, *, spent_before: float = 0.0) -> AsyncIterator[None]:
        """Wait for a turn, and have it within the block, which must not wait for anything itself.

        What the block costs is charged to the key, with what the work has cost before.
        """
        await self._slot.acquire(key)
        begun = self._spent()
        try:
            yield
        finally:
            cost = spent_before + self._spent() - begun
            self._slot.pay(key, cost)
            self._at_a_stretch += cost
            self._end(_PASSES if self._at_a_stretch > _STRETCH else 0)

    def _end(self, passes: int) -> None:
        """End the turn after so many passes of the loop, in which others come in."""
        if passes:
            self._at_a_stretch = 0.0
            asyncio.get_running_loop().call_soon(self._end, passes - 1)
        else:
            self._slot.release()
