"""A queue of keys that orders work without ever doing one key twice at once.

A key is in one of four states: absent, waiting, in work, or in work and dirty (added again
meanwhile; it waits again as soon as the work on it is done). Adding a waiting key changes nothing:
that is how a hundred events become one reconciliation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Keys in the order of their first addition."""

    def __init__(self) -> None:
        self._waiting: dict[K, None] = {}  # ordered; disjoint from _working
        self._working: set[K] = set()
        self._dirty: set[K] = set()  # a subset of _working
        self._timers: dict[K, asyncio.TimerHandle] = {}  # the earliest pending add_after of a key
        self._arrived = asyncio.Event()  # set iff _waiting is not empty

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: K) -> None:
        """Have the key worked on, now or as soon as the work on it is done."""
        if timer := self._timers.pop(key, None):
            timer.cancel()

        if key in self._working:
            self._dirty.add(key)
        else:
            self._waiting[key] = None
            self._arrived.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key after that many seconds, unless it is added before or waits already."""
        loop = asyncio.get_running_loop()
        known = self._timers.get(key)
        if key in self._waiting or (known and known.when() <= loop.time() + seconds):
            return

        if known:
            known.cancel()

        self._timers[key] = loop.call_later(seconds, self.add, key)

    async def get(self) -> K:
        """The next key; it is in work until `done`."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()

        key = next(iter(self._waiting))
        del self._waiting[key]
        self._working.add(key)
        return key

    def done(self, key: K) -> None:
        """The work on the key ended; if it was added meanwhile, it waits again."""
        self._working.discard(key)
        if key in self._dirty:
            self._dirty.discard(key)
            self._waiting[key] = None
            self._arrived.set()

    def close(self) -> None:
        """Drop all timers."""
        for timer in self._timers.values():
            timer.cancel()

        self._timers.clear()
