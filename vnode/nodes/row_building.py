"""Builds the rows of a ClusterSummary (`vnode.api.rows`) from what each node has free. Pure.

Rows are bounded, in number and in bytes, however many nodes there are: amounts are rounded down as
finely as the bounds allow, so that enough nodes have equal ones. Devices are never rounded. Nodes
with devices have a budget of their own, so that many different nodes without any do not blur them.
What cannot be listed even so is left out, and the text says that it is not complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from vnode.api import objects, resources, rows_text, taints
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows_text import RowsTaint, RowsText

_MIB: Final = 2**20
_HUGE_PAGES: Final = "hugepages-"
_FIRST: Final = (resources.CPU, resources.MEMORY, resources.PODS)
_STORAGE: Final = "ephemeral-storage"
# Each unit is a multiple of the one before, so that what is rounded can be rounded further; the
# last one doubles from then on. What seldom keeps a pod waiting is rounded soonest.
_STEPS: Final[Mapping[str, tuple[int, ...]]] = {
    resources.CPU: (1, 100, 1000),
    resources.MEMORY: (_MIB, 256 * _MIB, 1024 * _MIB, 4096 * _MIB),
    _STORAGE: (1024 * _MIB, 16384 * _MIB, 65536 * _MIB, 262144 * _MIB),
    resources.PODS: (1, 4, 16, 32),
}
_LEVELS: Final = 24  # then CPUs count by the million

_LABEL_BYTES: Final = 2048  # of all groups
_TAINT_BYTES: Final = 1024
_TOTAL_BYTES: Final = 512  # of the devices of groups

_Key: TypeAlias = tuple[int, int, tuple[int, ...]]
"""The places of a node's group and of its taints, and its amounts, as multiples of units."""


_Group: TypeAlias = tuple[tuple[str, str], ...]
"""The labels of a node that are told."""

_Kind = TypeVar("_Kind", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class _Budget:
    rows: int
    size: int  # bytes


_OF_DEVICES: Final = _Budget(192, 2048)
_OF_OTHERS: Final = _Budget(64, 1024)


def build(
    nodes: Iterable[Object],
    free: Mapping[str, Resources],
    keys: Sequence[str],
    allocatable: Mapping[str, Resources] = MappingProxyType({}),
) -> str:
    """Return the text for the annotation of usable nodes; `free` has what each has, by name.

    `keys` are the labels that tell models apart; `allocatable` is what each node has in all.
    """
    nodes = list(nodes)
    keys = tuple(keys)[: rows_text.MOST_KEYS]
    names, all_named = _names(free.values())
    kinds = {objects.name(node): (_labels(node, keys), _taints(node)) for node in nodes}
    groups = _places((group for group, _ in kinds.values()), rows_text.MOST_GROUPS, _LABEL_BYTES)
    sets = _places((set_ for _, set_ in kinds.values()), rows_text.MOST_TAINT_SETS, _TAINT_BYTES)

    counts: tuple[Counter[_Key], Counter[_Key]] = (Counter(), Counter())
    finest = _units(names, 0)
    for name, (group, set_) in kinds.items():
        if group in groups and set_ in sets:
            amounts = tuple(
                max(0, free[name].get(n, 0)) // unit for n, unit in zip(names, finest, strict=True)
            )
            is_plain = not group and not any(map(resources.is_extended, free[name]))
            counts[is_plain][groups[group], sets[set_], amounts] += 1

    lists = [_listed(c, b, names) for c, b in zip(counts, (_OF_DEVICES, _OF_OTHERS), strict=True)]
    rows = [
        _row(key, count, place)
        for place, (listed, _) in enumerate(lists)
        for key, count in listed.items()
    ]
    text = RowsText(
        resources=names,
        units=[_units(names, level) for _, level in lists],
        keys=keys,
        groups=[dict(group) for group in groups],
        taints=list(sets),
        rows=rows,
        nodes=len(nodes),
        complete=all_named and sum(row[0] for row in rows) == len(nodes),
        totals=_totals(kinds, groups, allocatable, list(filter(resources.is_extended, names))),
    )
    return rows_text.encode(text)


def _names(lists: Iterable[Resources]) -> tuple[list[str], bool]:
    """Return the resources to tell of, and whether these are all that the nodes have."""
    found = {name for amounts in lists for name in amounts if _is_told(name)}
    first = [name for name in _FIRST if name in found]
    devices = sorted(filter(resources.is_extended, found))
    names = [*first, *devices, *sorted(found.difference(first, devices))]
    return names[: rows_text.MOST_RESOURCES], len(names) <= rows_text.MOST_RESOURCES


def _is_told(name: str) -> bool:
    return name in _STEPS or name.startswith(_HUGE_PAGES) or resources.is_extended(name)


def _units(names: Iterable[str], level: int) -> tuple[int, ...]:
    return tuple(_unit(name, level) for name in names)


def _unit(name: str, level: int) -> int:
    if name.startswith(_HUGE_PAGES):
        return _MIB

    steps = _STEPS.get(name)
    if steps is None:
        return 1

    return steps[min(level, len(steps) - 1)] << max(0, level - len(steps) + 1)


def _labels(node: Object, keys: Collection[str]) -> _Group:
    found = objects.labels(node)
    return tuple((key, found[key]) for key in keys if key in found)


def _taints(node: Object) -> tuple[RowsTaint, ...]:
    found = {
        RowsTaint(t.get("key", ""), t["effect"], t.get("value") or "")
        for t in objects.spec(node).get("taints") or ()
        if t.get("effect") in taints.HARD
    }
    return tuple(sorted(found))


def _places(values: Iterable[_Kind], most: int, size: int) -> dict[_Kind, int]:
    """Return the values that there is space for and their places, the most frequent ones first."""
    counts: Counter[_Kind] = Counter(values)
    places: dict[_Kind, int] = {}
    for value in sorted(counts, key=lambda each: (-counts[each], each)):
        needed = len(msgspec.json.encode(value))
        if len(places) < most and needed <= size:
            places[value] = len(places)
            size -= needed

    return places


def _totals(
    kinds: Mapping[str, tuple[_Group, object]],
    groups: Iterable[_Group],
    allocatable: Mapping[str, Resources],
    devices: Collection[str],
) -> list[Resources]:
    """Return the devices of each group in all, of as many of the first ones as there is space."""
    sums: dict[_Group, Resources] = {}
    for name, (group, _) in kinds.items():
        all_ = allocatable.get(name, {})
        if found := {n: all_[n] for n in devices if all_.get(n)}:
            sums[group] = resources.add(sums.get(group, {}), found)

    totals = [sums.get(group, {}) for group in groups]
    while totals and not (totals[-1] and len(msgspec.json.encode(totals)) <= _TOTAL_BYTES):
        del totals[-1]

    return totals


def _listed(
    counts: Counter[_Key], budget: _Budget, names: Sequence[str]
) -> tuple[dict[_Key, int], int]:
    """Return the rows, rounded as finely as the budget allows, and how far that is."""
    level = 0
    while level < _LEVELS and not _is_within(counts, budget):
        # What is far too much is still too much after one step.
        further = level + (2 if len(counts) > 8 * budget.rows else 1)
        counts = _rounded(counts, _units(names, level), _units(names, further))
        level = further

    kept = sorted(counts.items(), key=lambda item: (item[0][2][::-1], item[0]), reverse=True)
    del kept[budget.rows :]
    while kept and _size(dict(kept)) > budget.size:
        del kept[-1 - len(kept) // 8 :]

    return dict(kept), level


def _is_within(counts: Mapping[_Key, int], budget: _Budget) -> bool:
    return len(counts) <= budget.rows and _size(counts) <= budget.size


def _rounded(counts: Counter[_Key], before: Sequence[int], after: Sequence[int]) -> Counter[_Key]:
    factors = [(i, after[i] // before[i]) for i in range(len(after)) if after[i] != before[i]]
    found: Counter[_Key] = Counter()
    for (group, set_, amounts), count in counts.items():
        rounded = list(amounts)
        for i, factor in factors:
            rounded[i] //= factor

        found[group, set_, tuple(rounded)] += count

    return found


def _size(counts: Mapping[_Key, int]) -> int:
    return len(msgspec.json.encode([_row(key, count, 0) for key, count in counts.items()]))


def _row(key: _Key, count: int, unit: int) -> list[int]:
    group, set_, amounts = key
    last = max((i + 1 for i, amount in enumerate(amounts) if amount), default=0)
    return [count, unit, group, set_, *amounts[:last]]
