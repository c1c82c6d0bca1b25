"""Says whose turn it is among keys that share one thing, such as the tenants of a cluster.

A key pays for what it gets: seconds of work, or a piece each. Of those that wait, the one that has
paid least so far is next, so each gets the same share, however many wait behind it, and nobody
idles while a key waits. Who wanted nothing for a while has saved nothing up.

A key may have a rank: the lower one goes first. But payments are counted in rounds, of one
`allowance` for each key, and a key that has used it up waits for the others to reach the next
round. So what is urgent goes first for a while, and keeps nobody off for ever.

Nothing here depends on time or chance: equals have their turns in the order in which they came.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

_FEW: Final = 128  # entries that are kept without looking whether they have to be

_Entry = tuple[int, int, float, int]
"""Round, rank and payments of a key, and the number of its entry: the least is next."""


class Turns(Generic[K]):
    """Holds the keys that wait, and what keys have paid. Costs O(log n) for a change or a turn."""

    def __init__(self, allowance: float) -> None:
        """Take what each key may pay in a round."""
        self._allowance = allowance
        # What keys have paid in all; who is absent counts as having paid `_floor`. So does who has
        # paid less, until it pays again.
        self._paid: dict[K, float] = {}
        self._floor = 0.0
        self._ranks: dict[K, tuple[int, int]] = {}  # of those that wait: rank, number of the entry
        self._heap: list[tuple[_Entry, K]] = []  # one valid entry of each that waits, stale others
        self._numbers = itertools.count()
        self._remembered = _FEW  # keys in `_paid` from which on it is looked through

    def __len__(self) -> int:
        """Count the keys that wait."""
        return len(self._ranks)

    def __contains__(self, key: object) -> bool:
        """Tell whether a key waits."""
        return key in self._ranks

    def wait(self, key: K, rank: int = 0) -> None:
        """Have a key wait for a turn, with that rank from now on."""
        known = self._ranks.get(key)
        if known is None or known[0] != rank:
            number = next(self._numbers)
            self._ranks[key] = rank, number
            heapq.heappush(self._heap, (self._entry(key, rank, number), key))
            if len(self._heap) > 2 * len(self._ranks) + _FEW:
                self._drop_stale()

    def leave(self, key: K) -> None:
        """Have a key wait no longer; what it has paid is remembered."""
        self._ranks.pop(key, None)

    def next(self) -> K | None:
        """Return the key whose turn it is, None if none waits. It waits until it leaves."""
        while self._heap:
            (entry, key) = self._heap[0]
            known = self._ranks.get(key)
            if known is None or known[1] != entry[3]:
                heapq.heappop(self._heap)
                continue

            present = self._entry(key, *known)
            if present != entry:  # it has paid since
                heapq.heapreplace(self._heap, (present, key))
                continue

            reached = entry[2] if len(self._ranks) == 1 else entry[0] * self._allowance
            self._floor = max(self._floor, reached)
            return key

        return None

    def pay(self, key: K, cost: float) -> None:
        """Note what a key has got."""
        self._paid[key] = self.paid(key) + cost
        if len(self._paid) > self._remembered:
            self._paid = {k: paid for k, paid in self._paid.items() if paid > self._floor}
            self._remembered = max(_FEW, 2 * len(self._paid))

    def paid(self, key: K) -> float:
        """Return what a key counts as having paid; only differences mean anything."""
        return max(self._paid.get(key, 0.0), self._floor)

    def _drop_stale(self) -> None:
        self._heap = [
            (entry, key)
            for entry, key in self._heap
            if self._ranks.get(key, (0, None))[1] == entry[3]
        ]
        heapq.heapify(self._heap)

    def _entry(self, key: K, rank: int, number: int) -> _Entry:
        paid = self.paid(key)
        return int(paid // self._allowance), rank, paid, number


def by_turns(
    turns: Turns[K],
    items: Iterable[T],
    key: Callable[[T], K],
    rank: Callable[[T], int] = lambda _item: 0,
) -> Generator[T]:
    """Yield items by the turns of their keys, those of one key in their order.

    Whoever takes one has its key pay, or else the next item may be of that key again. Close it
    before the next call with the same turns.
    """
    waiting: dict[K, deque[T]] = {}
    for item in items:
        waiting.setdefault(key(item), deque()).append(item)

    for each, queue in waiting.items():
        turns.wait(each, rank(queue[0]))

    try:
        while (following := turns.next()) is not None:
            queue = waiting[following]
            yield queue.popleft()
            if queue:
                turns.wait(following, rank(queue[0]))
            else:
                turns.leave(following)
    finally:
        for each in waiting:
            turns.leave(each)
