"""Counts on the rows of one target what was promised to pods with devices since it reported them.

Rows say which nodes a pod may use by model and taints, so a promise counts on one of these: on the
node with the fewest devices that has enough, where kube-scheduler need not put it, but where it
keeps the fewest others away. Pods without devices do not count here: sums do for them, and they are
too many.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from vnode.api import resources
from vnode.api.resources import Resources
from vnode.api.rows import AlikeNodes, RowOfNodes, Rows
from vnode.api.shape import Shape


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
        self._nodes: list[_Node] = []
        self._places: dict[Hashable, tuple[_Node, Resources]] = {}
        self._left: Rows | None = reported  # None until it is asked for after a change

    def left(self) -> Rows:
        """Return the rows of what is left; the reported ones if nothing is promised."""
        if self._left is None:
            self._left = self._rows() if self._nodes else self._reported

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
            self._nodes.append(where)

        where.taken = resources.add(where.taken, wanted)
        self._places[key] = where, wanted
        self._left = None

    def withdraw(self, key: Hashable) -> None:
        """Count a promise no more."""
        if (place := self._places.pop(key, None)) is None:
            return

        node, wanted = place
        node.taken = resources.subtract(node.taken, wanted)
        if not any(node.taken.values()):
            self._nodes.remove(node)

        self._left = None

    def _present(
        self, shape: Shape | None = None
    ) -> Iterator[tuple[int, int, RowOfNodes, _Node | None]]:
        """Yield the rows of nodes that a pod may use, by what is left; with the place of each.

        Nodes on which something is promised come one by one.
        """
        reported, apart = self._reported, self._apart()
        for i, alike in enumerate(reported.alike):
            if shape is not None and not alike.takes(shape, reported.keys):
                continue

            for j, row in enumerate(alike.rows):
                nodes = apart.get((i, j), ())
                for node in nodes:
                    yield i, j, _less(row, node.taken), node

                if (count := row.count - len(nodes)) > 0:
                    yield i, j, RowOfNodes(count, row.free, row.most), None

    def _apart(self) -> dict[tuple[int, int], list[_Node]]:
        apart: dict[tuple[int, int], list[_Node]] = {}
        for node in self._nodes:
            apart.setdefault((node.alike, node.row), []).append(node)

        return apart

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


def _less(row: RowOfNodes, taken: Mapping[str, int]) -> RowOfNodes:
    free = {name: max(0, amount - taken.get(name, 0)) for name, amount in row.free.items()}
    return RowOfNodes(1, free, resources.subtract(row.most, taken))


def _order(wanted: Resources, row: RowOfNodes) -> tuple[bool, list[int], int]:
    """Sort those first that have enough for certain, then those with the fewest devices."""
    devices = [row.most.get(name, 0) for name in wanted if resources.is_extended(name)]
    doubtful = bool(resources.insufficient(wanted, row.free))
    return doubtful, devices, -row.most.get(resources.CPU, 0)
