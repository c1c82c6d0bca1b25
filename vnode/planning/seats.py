"""Plans a workload: how many of its replicas each cluster is to have. Pure, and blind to capacity.

Replicas are handed out one after the other, like seats of a parliament: the minimums first, then
tier by tier, by weight within a tier. Where the next replica goes depends only on how many each
cluster has, so a plan of n + 1 replicas is that of n and one more: when a workload grows or shrinks
only the difference moves, and pods that are created one by one come out as if they had been planned
together.

Shares are Webster's (Sainte-Lague's): the next seat goes to the largest weight / (2 * seats + 1).
It favours neither large nor small weights; rounding up in a fixed order, as others do, gives 2/2/0
for four replicas on three equal clusters where this gives 2/1/1.
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

MAX_WEIGHT = 1_000_000
"""Weights up to here, and seats up to some 100,000, are told apart by floating-point quotients."""

_FEW: Final = 4  # replicas for each share that are rather handed out one by one
_HALVINGS: Final = 10  # of the logarithm: what is left then is some percent
_EXACT: Final = 1 + 1e-9  # what is nearer to a quotient is left to the exact comparison


@dataclass(frozen=True, slots=True)
class Share:
    """What a workload may have in one cluster. Weights count among clusters of the same tier."""

    node: str
    """The name of the virtual node."""
    weight: int = 1
    """0: nothing but the minimum."""
    tier: int = 0
    """Higher ones are filled first."""
    minimum: int = 0
    maximum: int | None = None
    """None: as many as there are."""

    def capped(self, count: int) -> Share:
        """Return the share with no more than so many, whatever its minimum was."""
        maximum = count if self.maximum is None else min(count, self.maximum)
        return dataclasses.replace(self, minimum=min(self.minimum, maximum), maximum=maximum)


@dataclass(frozen=True, slots=True)
class Plan:
    """How many replicas each cluster is to have."""

    planned: Mapping[str, int]
    """Node -> replicas, without zeroes; do not change."""
    unplaced: int = 0
    """Replicas that the maximums leave over."""


class Seats:
    """The order in which a workload's replicas are handed out, worked out as far as it is needed.

    `workload` breaks ties, so that not all workloads of one replica go to the same cluster.
    """

    def __init__(self, shares: Iterable[Share], workload: str) -> None:
        self.ranked = _ranked(shares, workload)
        """The shares, best first."""
        self._next = _order(self.ranked)
        # The nodes of the first replicas, in order.
        self._given: list[str] = []
        self._complete = False
        # The last plan: pods come and go one by one, and so do seats.
        self._planned: Counter[str] = Counter()
        self._seats = 0

    def first(self, count: int) -> Sequence[str]:
        """Return the nodes of the first `count` replicas, in order; fewer where all are full."""
        while len(self._given) < count and not self._complete:
            node = next(self._next, None)
            if node is None:
                self._complete = True
            else:
                self._given.append(node)

        return self._given[:count]

    def plan(self, replicas: int) -> Plan:
        """Return the plan for so many replicas."""
        if len(self._given) < replicas:
            self.first(replicas)

        seats = max(0, min(replicas, len(self._given)))
        if seats != self._seats:
            planned = self._planned.copy()
            planned.update(self._given[self._seats : seats])
            planned.subtract(self._given[seats : self._seats])
            self._planned, self._seats = +planned, seats

        return Plan(self._planned, max(0, replicas - seats))


def plan(replicas: int, shares: Iterable[Share], workload: str) -> Plan:
    """Return how many replicas each cluster is to have."""
    return plan_once(replicas, _ranked(shares, workload))


def plan_once(replicas: int, ranked: Sequence[Share]) -> Plan:
    """Return what `Seats` plans for its `ranked` shares, or for these with other maximums.

    Where each of many closed clusters makes shares of its own, the order of all replicas is too
    much to be worked out for one number of them.
    """
    ranks, seats, left = _ranks(ranked), Counter[str](), max(0, replicas)
    for share in ranked:
        given = min(left, _bounded(share.minimum, share))
        seats[share.node] += given
        left -= given

    for tier in _tiers(ranked):
        left -= _leap(tier, seats, left)
        left -= sum(1 for _ in islice(_by_weight(tier, seats, ranks), left))

    return Plan(+seats, left)


def _ranked(shares: Iterable[Share], workload: str) -> tuple[Share, ...]:
    return tuple(sorted(shares, key=lambda s: (-s.tier, -s.weight, _tie(workload, s.node))))


def _order(best_first: Sequence[Share]) -> Iterator[str]:
    """Yield the node of each next replica, until all are at their maximum."""
    ranks, seats = _ranks(best_first), Counter[str]()
    for share in best_first:
        for _ in range(_bounded(share.minimum, share)):
            seats[share.node] += 1
            yield share.node

    for tier in _tiers(best_first):
        yield from _by_weight(tier, seats, ranks)


def _ranks(ranked: Iterable[Share]) -> dict[str, int]:
    """Return the places of the nodes, which break ties: shares of one weight are in that order."""
    return {share.node: rank for rank, share in enumerate(ranked)}


def _tiers(ranked: Iterable[Share]) -> list[list[Share]]:
    return [list(tier) for _, tier in groupby(ranked, key=lambda share: share.tier)]


def _leap(tier: Sequence[Share], seats: Counter[str], left: int) -> int:
    """Take most of the next `left` replicas as handed out, at once; return how many.

    These are all whose quotients are above one that is found by halving: low enough for most of
    them, and too high for more than are left. So the rest follows as if each had been handed out.
    """
    takers = [share for share in tier if share.weight > 0 and _has_room(share, seats)]
    if left < _FEW * len(takers) or not takers:
        return 0

    given = [seats[share.node] for share in takers]
    rows = [
        (share.weight, has, has + left if share.maximum is None else share.maximum)
        for share, has in zip(takers, given, strict=True)
    ]
    high = float(takers[0].weight)
    low = takers[-1].weight / (2 * (left + max(given)) + 1)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if sum(_gains(rows, middle)) > left else (low, middle)

    found = _gains(rows, high * _EXACT)
    for share, gain in zip(takers, found, strict=True):
        seats[share.node] += gain

    return sum(found)


def _gains(rows: Iterable[tuple[int, int, int]], quotient: float) -> list[int]:
    """Return how many seats of each share have a larger quotient, beyond those that it has.

    A row has its weight, its seats, and how many it may have. This is called often.
    """
    gains = []
    for weight, given, most in rows:
        count = math.ceil((weight / quotient - 1) / 2)
        count = min(count, most)
        gains.append(count - given if count > given else 0)

    return gains


def _by_weight(
    tier: Sequence[Share], seats: Counter[str], ranks: Mapping[str, int]
) -> Iterator[str]:
    """Yield by Webster's method, from the seats that there are, up to the maximums."""

    def entry(share: Share) -> tuple[float, int, int, Share]:
        given = seats[share.node]
        return -share.weight / (2 * given + 1), given, ranks[share.node], share

    heap = [entry(s) for s in tier if s.weight > 0 and _has_room(s, seats)]
    heapq.heapify(heap)
    while heap:
        share = heap[0][3]
        seats[share.node] += 1
        yield share.node
        if _has_room(share, seats):
            heapq.heapreplace(heap, entry(share))
        else:
            heapq.heappop(heap)


def _has_room(share: Share, seats: Counter[str]) -> bool:
    return share.maximum is None or seats[share.node] < share.maximum


def _bounded(count: int, share: Share) -> int:
    return count if share.maximum is None else min(count, share.maximum)


def _tie(workload: str, node: str) -> str:
    return hashlib.blake2b(f"{workload}\0{node}".encode(), digest_size=8).hexdigest()
