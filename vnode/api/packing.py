"""Tells whether pods fit on the nodes of a target at the same time, by its rows. Pure.

Rows say how many pods of one shape fit. Pods of several shapes, or beside others that were promised
room, compete for the same nodes: so they are put there one shape after the other, the largest
first, each on the fullest nodes that still hold it. That is no proof that others could not be put
there in a better way, but what it finds is there: a row has at least what it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api import resources
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, Rows
from vnode.api.shape import Shape

MOST_SHAPES: Final = 32
"""Shapes of pods that are told apart: each is put on all rows, in one step of a cycle."""
_FREQUENT: Final = MOST_SHAPES // 2  # of these, with their constraints


@dataclass(frozen=True, slots=True)
class PodsOfShape:
    """So many pods of one shape."""

    shape: Shape
    count: int


@dataclass(frozen=True, slots=True)
class _Bin:
    """Nodes that are alike in what they have and in what is left on them."""

    alike: AlikeNodes
    free: Resources
    count: int


def by_shape(listed: Iterable[Resources]) -> list[PodsOfShape]:
    """Return pods of which only requests are known, those with the same together.

    If these are of too many shapes, some that are alike count as if each asked for the most.
    """
    counts = Counter(tuple(sorted(requests.items())) for requests in listed)
    return _rounded(((dict(requests), count) for requests, count in counts.items()), MOST_SHAPES)


def _rounded(requested: Iterable[tuple[Resources, int]], most: int) -> list[PodsOfShape]:
    """Return pods by their requests; of too many, some that are alike ask for the most of these."""
    listed = list(requested)
    if len(listed) <= most:
        return [PodsOfShape(Shape(requests), count) for requests, count in listed]

    ordered = sorted(listed, key=lambda each: (sorted(each[0]), sorted(each[0].items())))
    size = -(-len(ordered) // most)
    found = list[PodsOfShape]()
    for start in range(0, len(ordered), size):
        alike = ordered[start : start + size]
        largest = resources.largest(requests for requests, _count in alike)
        found.append(PodsOfShape(Shape(dict(largest)), sum(count for _requests, count in alike)))

    return found


def together(pods: Iterable[PodsOfShape]) -> list[PodsOfShape]:
    """Return these pods with those of one shape together.

    Of too many shapes the most frequent stay as they are. Of all others only the requests count, as
    in `by_shape`.
    """
    counts, shapes = Counter[str](), dict[str, Shape]()
    for each in pods:
        counts[each.shape.key] += each.count
        shapes.setdefault(each.shape.key, each.shape)

    if len(counts) <= MOST_SHAPES:
        return [PodsOfShape(shapes[key], count) for key, count in counts.items()]

    ordered = counts.most_common()
    frequent = [PodsOfShape(shapes[key], count) for key, count in ordered[:_FREQUENT]]
    others = ((shapes[key].wanted, count) for key, count in ordered[_FREQUENT:])
    return [*frequent, *_rounded(others, MOST_SHAPES - _FREQUENT)]


def total(pods: Iterable[PodsOfShape]) -> Resources:
    """Return what all of them request."""
    requested: Resources = {}
    for each in pods:
        amounts = {name: amount * each.count for name, amount in each.shape.wanted.items()}
        requested = resources.add(requested, amounts)

    return requested


def unplaced(rows: Rows, pods: Iterable[PodsOfShape]) -> dict[int, int]:
    """Return of which of `pods`, by their place in it, how many find no room beside the others."""
    bins = [_Bin(alike, row.free, row.count) for alike in rows.alike for row in alike.rows]
    left: dict[int, int] = {}
    for place, each in sorted(enumerate(pods), key=lambda entry: _urgency(rows, entry[1].shape)):
        bins, missing = _put(bins, each, rows)
        if missing:
            left[place] = missing

    return left


def fits(rows: Rows, pods: Iterable[PodsOfShape]) -> bool:
    """Tell whether all of them find room."""
    return not unplaced(rows, pods)


def _urgency(rows: Rows, shape: Shape) -> tuple[int, float]:
    """Order shapes: those that may be on few kinds of nodes first, then those that take most."""
    possible = list(rows.may_hold(shape))
    most = resources.largest(alike.largest for alike in possible)
    parts = [amount / most[name] for name, amount in shape.wanted.items() if most.get(name)]
    return len(possible), -max(parts, default=0.0)


def _put(bins: list[_Bin], pods: PodsOfShape, rows: Rows) -> tuple[list[_Bin], int]:
    """Put pods on the fullest nodes that hold them; return what is left, and of how many pods."""
    wanted, left = pods.shape.wanted, pods.count
    order = pods.shape.order
    after: list[_Bin] = []
    for each in sorted(bins, key=lambda bin_: [bin_.free.get(name, 0) for name in order]):
        room = _room(each, pods.shape, rows) if left else 0
        if not room:
            after.append(each)
            continue

        whole = min(each.count, left // room)
        left -= whole * room
        rest = min(left, room) if whole < each.count else 0
        left -= rest
        for count, on_each in ((whole, room), (1 if rest else 0, rest)):
            if count:
                taken = {name: amount * on_each for name, amount in wanted.items()}
                after.append(_Bin(each.alike, resources.subtract(each.free, taken), count))

        if untouched := each.count - whole - bool(rest):
            after.append(_Bin(each.alike, each.free, untouched))

    return after, left


def _room(bin_: _Bin, shape: Shape, rows: Rows) -> int:
    """Return how many pods of a shape one of the nodes holds."""
    room = resources.times(shape.wanted, bin_.free) or 0
    return room if room > 0 and bin_.alike.takes(shape, rows.keys) else 0
