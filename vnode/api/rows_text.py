"""Writes rows as the annotation of a ClusterSummary, and reads them where another cluster wrote it.

Amounts are whole numbers of the units that the text names, in the order of its resources; those at
the end that are zero are left out:

    {"resources": ["cpu", "memory", "pods", "nvidia.com/gpu"],
     "units": [[1000, 1073741824, 4, 1]], "keys": ["nvidia.com/gpu.product"],
     "groups": [{"nvidia.com/gpu.product": "A100"}], "taints": [[]],
     "rows": [[3, 0, 0, 0, 90, 900, 27, 8]], "nodes": 3, "complete": true,
     "totals": [{"nvidia.com/gpu": 24}], "v": 1}

Three nodes without taints have at least 90 and less than 91 CPUs free, and eight devices, of 24 in
all. A row begins with the number of nodes and the places of its unit, group and taints.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from vnode.api import documents, names, resources
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows, model_of

MOST_ROWS: Final = 256
MOST_RESOURCES: Final = 24
MOST_KEYS: Final = 16
MOST_GROUPS: Final = 32
MOST_TAINT_SETS: Final = 16
LIMIT: Final = 32 * 1024
"""Characters of the annotation, which is in all sources' memory."""

VERSION: Final = 1
_HEAD: Final = 4  # numbers of a row before its amounts
_LARGEST: Final = 2**63


class RowsTaint(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """A taint that keeps pods away."""

    key: str
    effect: str
    value: str = ""


class RowsText(msgspec.Struct, frozen=True):
    """The annotation, as described above."""

    resources: Sequence[str]
    units: Sequence[Sequence[int]]
    keys: Sequence[str]
    groups: Sequence[dict[str, str]]
    taints: Sequence[Sequence[RowsTaint]]
    rows: Sequence[Sequence[int]]
    nodes: int
    complete: bool
    totals: Sequence[dict[str, int]] = ()
    """The devices of each of the first groups, in all."""
    v: int = VERSION


def encode(text: RowsText) -> str:
    """Return the text of the annotation."""
    return msgspec.json.encode(text).decode()


def decode(text: object) -> Rows | None:
    """Return the rows of such an annotation; None without one, or if it makes no sense."""
    return _decode(text) if isinstance(text, str) and len(text) <= LIMIT else None


@lru_cache(maxsize=256)  # summaries come every second, often with the same text
def _decode(text: str) -> Rows | None:
    try:
        found = msgspec.json.decode(text, type=RowsText)
    except documents.NO_JSON:
        return None

    return _rows(found) if _makes_sense(found) else None


def _makes_sense(found: RowsText) -> bool:
    bounds = (
        (found.rows, MOST_ROWS),
        (found.resources, MOST_RESOURCES),
        (found.keys, MOST_KEYS),
        (found.groups, MOST_GROUPS),
        (found.taints, MOST_TAINT_SETS),
        (found.totals, len(found.groups)),
        *((total, MOST_RESOURCES) for total in found.totals),
    )
    return (
        found.v == VERSION
        and all(len(listed) <= most for listed, most in bounds)
        and all(len(units) == len(found.resources) for units in found.units)
        and all(0 < unit < _LARGEST for units in found.units for unit in units)
        and all(_is_taint(taint) for listed in found.taints for taint in listed)
        and all(0 <= n < _LARGEST for total in found.totals for n in total.values())
        and all(_is_row(row, found) for row in found.rows)
        and sum(row[0] for row in found.rows) <= found.nodes < _LARGEST
    )


def _is_taint(taint: RowsTaint) -> bool:
    """Tell whether it can be one; users read it."""
    valid = not taint.value or names.LABEL_VALUE.fullmatch(taint.value)
    return bool(valid and names.QUALIFIED_NAME.fullmatch(taint.key))


def _is_row(row: Sequence[int], found: RowsText) -> bool:
    if not _HEAD <= len(row) <= _HEAD + len(found.resources):
        return False

    places = zip(row[1:_HEAD], (found.units, found.groups, found.taints), strict=True)
    return (
        row[0] > 0
        and all(0 <= place < len(listed) for place, listed in places)
        and all(0 <= amount < _LARGEST for amount in row[_HEAD:])
    )


def _rows(found: RowsText) -> Rows:
    alike: dict[tuple[int, int], list[RowOfNodes]] = {}
    for row in found.rows:
        count, unit, group, taints = row[:_HEAD]
        read = _row(count, found.resources, found.units[unit], row[_HEAD:])
        alike.setdefault((group, taints), []).append(read)

    sets: list[tuple[Object, ...]] = [
        tuple({"key": t.key, "value": t.value, "effect": t.effect} for t in listed)
        for listed in found.taints
    ]
    nodes = (
        AlikeNodes(found.groups[group], sets[taints], tuple(rows))
        for (group, taints), rows in alike.items()
    )
    return Rows(
        tuple(found.keys),
        frozenset(found.resources),
        # Those first that most pods may use: a pod that fits there is not compared with the rest.
        tuple(sorted(nodes, key=lambda each: not each.is_plain)),
        found.nodes,
        found.complete,
        _totals(found),
    )


def _totals(found: RowsText) -> dict[str, Resources]:
    totals: dict[str, Resources] = {}
    for group, total in zip(found.groups, found.totals, strict=False):
        model = model_of(group, found.keys)
        totals[model] = resources.add(totals.get(model, {}), total)

    return totals


def _row(
    count: int, resources: Sequence[str], units: Sequence[int], amounts: Sequence[int]
) -> RowOfNodes:
    free: Resources = dict.fromkeys(resources, 0)
    most: Resources = {name: unit - 1 for name, unit in zip(resources, units, strict=True)}
    for name, unit, amount in zip(resources, units, amounts, strict=False):
        free[name] = amount * unit
        most[name] = amount * unit + unit - 1

    return RowOfNodes(count, free, most)
