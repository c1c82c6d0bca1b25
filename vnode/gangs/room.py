"""Tells whether a target has room for a gang: for enough of its pods at the same time. Pure.

Rows say what is free on real nodes, rounded: at least so much, and at most so much. A gang that
fits by the first fits for sure, as far as the report is up to date; by the second it may, and
candidates find out. What targets do not tell is left to candidates as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vnode.api import packing, resources
from vnode.api.node_pools import NodePool
from vnode.api.packing import PodsOfShape
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.gangs import deciding


@dataclass(frozen=True, slots=True)
class GangRoom:
    """What a target has for a gang; `refusal` says why that is not enough."""

    refusal: str = ""
    place: int = 0
    """How many find one, as far as that is counted."""
    is_sure: bool = False
    """They do by what is told."""
    grows: bool = False
    """They may, if the target gets further nodes."""
    is_known: bool = True
    """It is told what its nodes have."""


@dataclass(frozen=True, slots=True)
class FreeInTarget:
    """What a target has told, and what others were promised since then."""

    target: str
    """Its name, for messages."""
    free: Resources | None
    rows: Rows | None
    promised: Sequence[PodsOfShape] = ()
    pools: tuple[NodePool, ...] = ()


def find(pods: Sequence[PodsOfShape], missing: int, there: FreeInTarget) -> GangRoom:
    """Return what a target has for pods of which `missing` are to find a place at once."""
    count = sum(each.count for each in pods)
    rows = there.rows
    if there.free is None:
        return GangRoom(is_known=False)

    if rows is None or not rows.complete:
        return _by_sum(pods, missing, there)

    left: dict[int, int] = {}
    for is_sure, nodes in ((True, rows), (False, _at_most(rows))):
        left = _unplaced(nodes, pods, there)
        place = count - sum(left.values())
        if place >= missing:
            return GangRoom(place=place, is_sure=is_sure)

    place = count - sum(left.values())
    grown = sum(min(n, _grown(pods[i], there)) for i, n in left.items())
    if place + grown >= missing:
        return GangRoom(place=place, grows=True)

    why = _why(pods, left, there)
    return GangRoom(deciding.counted(place, count, there.target, why), place)


def _by_sum(pods: Sequence[PodsOfShape], missing: int, there: FreeInTarget) -> GangRoom:
    """Go by what all nodes have together, where single ones are not told, or not all of them."""
    left = resources.subtract(there.free or {}, packing.total(there.promised))
    place = 0
    for each in sorted(pods, key=lambda each: sorted(each.shape.wanted.values())):
        listed = each.shape.only(left).wanted
        fit = resources.times(listed, left)
        taken = each.count if fit is None else max(0, min(each.count, fit))
        left = resources.subtract(left, packing.total([PodsOfShape(each.shape, taken)]))
        place += taken

    if place >= missing:
        return GangRoom(place=place, is_known=False)

    if any(_grown(each, there) for each in pods):
        return GangRoom(place=place, grows=True, is_known=False)

    count = sum(each.count for each in pods)
    return GangRoom(deciding.counted(place, count, there.target, _short(pods, there)), place)


def _unplaced(rows: Rows, pods: Sequence[PodsOfShape], there: FreeInTarget) -> dict[int, int]:
    """Return of which of the pods how many find no place beside those that others were promised."""
    told = rows.resources
    others = [PodsOfShape(each.shape.only(told), each.count) for each in there.promised]
    asked = [PodsOfShape(each.shape.only(told), each.count) for each in pods]
    left = packing.unplaced(rows, [*others, *asked])
    return {i - len(others): n for i, n in left.items() if i >= len(others)}


def _at_most(rows: Rows) -> Rows:
    """Return the rows with the most that each node may have."""
    alike = tuple(
        replace(each, rows=tuple(replace(row, free=row.most) for row in each.rows))
        for each in rows.alike
    )
    return replace(rows, alike=alike)


def _grown(pods: PodsOfShape, there: FreeInTarget) -> int:
    """Return how many pods of a shape find a place on nodes that may come."""
    found = 0
    for pool in there.pools:
        if pool.may_hold(pods.shape):
            told = pods.shape.only(pool.allocatable).wanted
            on_each = resources.times(told, pool.allocatable)
            found += pool.left(there.pools, there.rows) * (
                pods.count if on_each is None else on_each
            )

    return found


def _why(pods: Sequence[PodsOfShape], left: dict[int, int], there: FreeInTarget) -> str:
    """Return what is missing for those that find no place, in kube-scheduler's words."""
    if short := _short(pods, there):
        return short

    shape = pods[min(left)].shape
    assert there.rows is not None
    if reasons := there.rows.refusals(shape.only(there.rows.resources)):
        return ", ".join(reasons)

    return f"Insufficient {shape.order[0]} on any one node" if shape.order else "no node is free"


def _short(pods: Sequence[PodsOfShape], there: FreeInTarget) -> str:
    left = resources.subtract(there.free or {}, packing.total(there.promised))
    lacking = resources.insufficient(packing.total(pods), left)
    return ", ".join(f"Insufficient {name}" for name in lacking)
