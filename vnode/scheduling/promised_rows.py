"""Counts on the rows of one target what was promised to pods with devices since it reported them.

Rows say which nodes a pod may use by model and taints, so a promise counts on one of these: on the
node with the fewest devices that has enough, where kube-scheduler need not put it, but where it
keeps the fewest others away. Nodes of a row on which the same is promised are looked at as one: of
a gang there may be a thousand. Pods without devices do not count here: sums do for them, and they
are too many.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from vnode.api import resources
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape

_Taken: TypeAlias = frozenset[tuple[str, int]]


@dataclass(slots=True, eq=False)
class _Node:
    """A node on which something is promised: one of those of a row."""

    alike: int
    row: int
    taken: Resources


class PromisedRows:
    """The rows as reported, less what was promised."""

    def __init__(self, reported: Rows) -> None:
        self.names = frozenset(filter(resources.is_extended, reported.resources))
        """The devices that nodes have."""
        self._reported = reported
        # The nodes on which something is promised: by place, and by what that is. None are empty.
        self._apart: dict[tuple[int, int], dict[_Taken, dict[_Node, None]]] = {}
        self._places: dict[Hashable, tuple[_Node, Resources]] = {}
        self._left: Rows | None = reported  # None until it is asked for after a change

    def left(self) -> Rows:
        """Return the rows of what is left; the reported ones if nothing is promised."""
        if self._left is None:
            self._left = self._rows() if self._apart else self._reported

        return self._left

    def largest(self) -> Resources:
        """Return, for each device, the most that may be left on any one node.

        Empty if not all nodes are known.
        """
        if not self._reported.complete:
            return {}

        most = resources.largest(alike.largest for alike in self.left().alike)
        return {name: amount for name, amount in most.items() if resources.is_extended(name)}

    def place(self, key: Hashable, shape: Shape) -> None:
        """Count a promise to a pod of a shape; on no node if it fits on none."""
        self.withdraw(key)
        known = self._reported.resources
        wanted = {name: amount for name, amount in shape.wanted.items() if name in known}
        places = [
            (_order(wanted, row), node or (i, j))
            for i, j, row, node in self._present(shape)
            if not resources.insufficient(wanted, row.most)
        ]
        if not places:
            return

        _, where = min(places, key=lambda place: place[0])
        if isinstance(where, tuple):
            where = _Node(*where, {})

        self._set(where, resources.add(where.taken, wanted))
        self._places[key] = where, wanted
        self._left = None

    def withdraw(self, key: Hashable) -> None:
        """Count a promise no more."""
        if (place := self._places.pop(key, None)) is None:
            return

        node, wanted = place
        self._set(node, resources.subtract(node.taken, wanted))
        self._left = None

    def _set(self, node: _Node, taken: Resources) -> None:
        """Note what is taken of a node from now on."""
        place, before, after = (node.alike, node.row), _key(node.taken), _key(taken)
        alike = self._apart.setdefault(place, {})
        if before:
            del alike[before][node]
            if not alike[before]:
                del alike[before]

        node.taken = taken
        if after:
            alike.setdefault(after, {})[node] = None

        if not alike:
            del self._apart[place]

    def _present(
        self, shape: Shape | None = None
    ) -> Iterator[tuple[int, int, RowOfNodes, _Node | None]]:
        """Yield the rows of nodes that a pod may use, by what is left; with the place of each.

        Nodes on which the same is promised come together, as one of them.
        """
        reported = self._reported
        for i, alike in enumerate(reported.alike):
            if shape is not None and not alike.takes(shape, reported.keys):
                continue

            for j, row in enumerate(alike.rows):
                count = row.count
                for nodes in self._apart.get((i, j), {}).values():
                    count -= len(nodes)
                    node = next(iter(nodes))
                    yield i, j, _less(row, node.taken, len(nodes)), node

                if count > 0:
                    yield i, j, RowOfNodes(count, row.free, row.most), None

    def _rows(self) -> Rows:
        reported = self._reported
        rows: list[list[RowOfNodes]] = [[] for _ in reported.alike]
        for i, _, row, _ in self._present():
            rows[i].append(row)

        alike = tuple(
            AlikeNodes(former.labels, former.taints, tuple(found))
            for former, found in zip(reported.alike, rows, strict=True)
        )
        return Rows(
            reported.keys,
            reported.resources,
            alike,
            reported.nodes,
            reported.complete,
            reported.totals,
        )


def _key(taken: Resources) -> _Taken:
    return frozenset(entry for entry in taken.items() if entry[1])


def _less(row: RowOfNodes, taken: Mapping[str, int], count: int) -> RowOfNodes:
    free = {name: max(0, amount - taken.get(name, 0)) for name, amount in row.free.items()}
    return RowOfNodes(count, free, resources.subtract(row.most, taken))


def _order(wanted: Resources, row: RowOfNodes) -> tuple[bool, list[int], int]:
    """Sort those first that have enough for certain, then those with the fewest devices."""
    devices = [row.most.get(name, 0) for name in wanted if resources.is_extended(name)]
    doubtful = bool(resources.insufficient(wanted, row.free))
    return doubtful, devices, -row.most.get(resources.CPU, 0)
