"""Says which Event is written next: namespaces take turns, and share what may wait.

An Event that the API server does not have yet waits for its namespace's turn. One that it has waits
until its count may be written again. Only the first kind counts as waiting: of the second there are
no more than are remembered, and each is small.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


def over_share(counts: Counter[str], namespace: str, limit: int) -> str:
    """Return the namespace that has to give one up for another one of `namespace`.

    That is itself once it has its share of the limit, else the one that has most.
    """
    namespaces = len(counts) + (namespace not in counts)
    if (counts[namespace] + 1) * namespaces > limit:
        return namespace

    return max(counts, key=lambda each: counts[each])


class EventQueue(Generic[K]):
    """Holds keys of Events, each at most once."""

    def __init__(self, limit: int) -> None:
        """Take how many new ones may wait."""
        self._limit = limit
        # By namespace, none empty, the next one first: what may be written now, and whether it is
        # new.
        self._ready: dict[str, dict[K, bool]] = {}
        self._new: Counter[str] = Counter()  # of those; no zeros
        self._later: dict[K, float] = {}  # when (monotonic) others may be
        self._heap: list[tuple[float, int, str, K]] = []  # of those, and stale entries
        self._numbers = itertools.count()

    def __contains__(self, key: tuple[str, K]) -> bool:
        """Tell whether a key of a namespace waits."""
        namespace, event = key
        return event in self._later or event in self._ready.get(namespace, ())

    def __len__(self) -> int:
        return len(self._later) + sum(map(len, self._ready.values()))

    def add_new(self, namespace: str, key: K) -> bool:
        """Have a new Event written; False if one was dropped for it, which may be itself."""
        has_room = self._new.total() < self._limit
        if not has_room:
            other = over_share(self._new, namespace, self._limit)
            if other == namespace:
                return False

            waiting = self._ready[other]
            self.remove(other, next(each for each in reversed(waiting) if waiting[each]))

        self._ready.setdefault(namespace, {})[key] = True
        self._new[namespace] += 1
        return has_room

    def add_later(self, namespace: str, key: K, due: float) -> None:
        """Have the count of an Event written at that moment (monotonic)."""
        self._later[key] = due
        heapq.heappush(self._heap, (due, next(self._numbers), namespace, key))

    def next(self, now: float) -> tuple[str, K] | None:
        """Return what is to be written, with its namespace, None if nothing is.

        It stays until it is removed.
        """
        while self._heap and self._heap[0][0] <= now:
            due, _number, namespace, key = heapq.heappop(self._heap)
            if self._later.get(key) == due:
                del self._later[key]
                self._ready.setdefault(namespace, {})[key] = False

        for namespace, keys in self._ready.items():  # the first
            self._ready[namespace] = self._ready.pop(namespace)  # behind the others
            return namespace, next(iter(keys))

        return None

    def due_in(self, now: float) -> float:
        """Return the seconds until something is due; infinity if nothing waits."""
        while self._heap and self._later.get(self._heap[0][3]) != self._heap[0][0]:
            heapq.heappop(self._heap)

        if self._ready:
            return 0.0

        return self._heap[0][0] - now if self._heap else float("inf")

    def remove(self, namespace: str, key: K) -> None:
        """Drop a key, if it waits."""
        self._later.pop(key, None)
        keys = self._ready.get(namespace, {})
        if keys.pop(key, False):
            self._new[namespace] -= 1
            if not self._new[namespace]:
                del self._new[namespace]

        if not keys:
            self._ready.pop(namespace, None)
