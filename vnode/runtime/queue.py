"""Queues keys, and never hands out a key that is being worked on.

A key is in one of four states: absent, waiting, in work, or in work and dirty (added again
meanwhile; it waits again as soon as the work on it is done). Adding a waiting key changes nothing:
so a hundred events become one reconciliation.

Keys wait in lanes, one for each target if their work sends requests to targets. A lane has a limit
of keys in work, and lanes take turns, so that a target that does not answer delays its own keys
only. Where there may be many lanes, as one for each namespace, all together have a limit, too.

Within a lane, whoever shares it takes turns as well: namespaces, one key each. So a key of one
waits for one of each other, however many these have.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from vnode.api.durations import TICK

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """Hands out keys in the order of their first addition, within each lane and `sharer` of it.

    At most `limit` keys of a lane are in work at once, and `total` of all; None means any number.
    `lane` is called when a key begins to wait, and its result holds until the work on that key is
    done. `waited` is called with each key that is handed out, and the seconds that it has waited.
    """

    def __init__(
        self,
        limit: int | None = None,
        lane: Callable[[K], Hashable] = lambda _key: None,
        total: int | None = None,
        *,
        sharer: Callable[[K], Hashable] = lambda _key: None,
        waited: Callable[[K, float], None] = lambda _key, _seconds: None,
    ) -> None:
        self._limit = limit
        self._lane = lane
        self._total = total
        self._sharer = sharer
        self._waited = waited
        self._lane_of: dict[K, Hashable] = {}  # of every key that waits or is in work
        # By lane, then by sharer, the one whose turn it is first: keys, and since when each waits.
        # Ordered, none empty.
        self._waiting: dict[Hashable, dict[Hashable, dict[K, float]]] = {}
        self._ready: dict[Hashable, None] = {}  # lanes with a waiting key and room, next one first
        self._working: set[K] = set()  # disjoint from the keys in _waiting
        self._count: Counter[Hashable] = Counter()  # keys in work by lane; no zeros
        self._dirty: set[K] = set()  # a subset of _working
        self._timers: dict[K, asyncio.TimerHandle] = {}  # the earliest pending add_after of a key
        self._arrived = asyncio.Event()  # set when there may be a key to hand out

    def __len__(self) -> int:
        """Count the keys that wait."""
        return len(self._lane_of) - len(self._working)

    def waiting(self, lane: Hashable, sharer: Hashable) -> int:
        """Count the keys of a sharer that wait in a lane."""
        return len(self._waiting.get(lane, {}).get(sharer, ()))

    def add(self, key: K) -> None:
        """Have the key worked on, now or as soon as the work on it is done."""
        if timer := self._timers.pop(key, None):
            timer.cancel()

        if key in self._working:
            self._dirty.add(key)
        elif key not in self._lane_of:
            self._wait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Add the key after that many seconds, unless it is added before or waits already.

        A remainder that the clock cannot tell from nothing would come back again and again.
        """
        loop, seconds = asyncio.get_running_loop(), max(TICK, seconds)
        timer = self._timers.get(key)
        waits = key in self._lane_of and key not in self._working
        if waits or (timer and timer.when() <= loop.time() + seconds):
            return

        if timer:
            timer.cancel()

        self._timers[key] = loop.call_later(seconds, self.add, key)

    async def get(self) -> K:
        """Return the next key of a lane that has room; it is in work until `done`."""
        while not self._ready or len(self._working) == self._total:
            self._arrived.clear()
            await self._arrived.wait()

        lane = next(iter(self._ready))
        del self._ready[lane]
        key, since = self._take(lane)
        self._working.add(key)
        self._count[lane] += 1
        self._settle(lane)
        self._waited(key, time.monotonic() - since)
        return key

    def done(self, key: K) -> None:
        """End the work on the key; if it was added meanwhile, it waits again."""
        self._working.discard(key)
        lane = self._lane_of.pop(key)
        self._count[lane] -= 1
        if not self._count[lane]:
            del self._count[lane]

        if key in self._dirty:
            self._dirty.discard(key)
            self._wait(key)

        self._settle(lane)
        if self._ready:  # there may have been no room for their keys, in all lanes together
            self._arrived.set()

    def close(self) -> None:
        """Drop all timers."""
        for timer in self._timers.values():
            timer.cancel()

        self._timers.clear()

    def _wait(self, key: K) -> None:
        lane = self._lane_of[key] = self._lane(key)
        keys = self._waiting.setdefault(lane, {}).setdefault(self._sharer(key), {})
        keys[key] = time.monotonic()
        self._settle(lane)

    def _take(self, lane: Hashable) -> tuple[K, float]:
        """Remove the next key of a lane, whose sharer has its next turn after all others'."""
        sharers = self._waiting[lane]
        sharer = next(iter(sharers))
        keys = sharers.pop(sharer)
        key = next(iter(keys))
        since = keys.pop(key)
        if keys:
            sharers[sharer] = keys

        if not sharers:
            del self._waiting[lane]

        return key, since

    def _settle(self, lane: Hashable) -> None:
        """Update `_ready` for a lane whose keys have changed."""
        if lane in self._waiting and (self._limit is None or self._count[lane] < self._limit):
            self._ready.setdefault(lane)
            self._arrived.set()
