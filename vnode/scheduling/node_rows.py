"""Counts on the nodes of one target what was promised since it last reported them.

A target reports what its largest nodes have free. Without that, a promise would reduce only the sum
over all nodes: pods that take more than half of a node each would be promised remainders of nodes
in which none of them fits. Which node a pod gets is for the target to say, so each promise is
counted where kube-scheduler would put it, on the node with the most CPU left. One of a pod with
devices counts on the node with the fewest that has enough: which model the pod wants is not known
here, and that must not keep others from a large node.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final

from vnode.api import resources
from vnode.api.resources import Resources
from vnode.api.rows import Rows

MOST: Final = 64
"""Nodes that are read of a target that lists them."""
_OF_ROWS: Final = 16
"""Nodes that rows stand for; each promise is compared with all of them."""


class NodeRows:
    """The nodes as reported, those with the most free CPU first.

    If there are others (not `is_complete`), these have no more CPU than the last of them.
    """

    def __init__(self, rows: Sequence[Resources], *, is_complete: bool) -> None:
        self._left = [dict(row) for row in rows]
        self._others = 0 if is_complete or not rows else rows[-1].get(resources.CPU, 0)
        self._is_complete = is_complete
        self._places: dict[Hashable, tuple[int, Resources]] = {}  # key -> row, what is taken there

    def place(self, key: Hashable, requests: Resources) -> None:
        """Count a promise on the node where it fits best; on none if it fits on none."""
        self.withdraw(key)
        if (best := self._best(requests)) is not None:
            self._left[best] = resources.subtract(self._left[best], requests)
            self._places[key] = best, requests

    def _best(self, requests: Resources) -> int | None:
        order = sorted(range(len(self._left)), key=lambda i: -self._left[i].get(resources.CPU, 0))
        fitting = (i for i in order if not resources.insufficient(requests, self._left[i]))
        if devices := [name for name in requests if resources.is_extended(name)]:

            def amounts(i: int) -> list[int]:
                return [self._left[i].get(name, 0) for name in devices]

            return min(fitting, key=amounts, default=None)

        return next(fitting, None)

    def withdraw(self, key: Hashable) -> None:
        """Count a promise no more."""
        if (place := self._places.pop(key, None)) is not None:
            row, requests = place
            self._left[row] = resources.add(self._left[row], requests)

    def largest(self, reported: Mapping[str, int]) -> Resources:
        """Return, for each resource, the most that may be left on any one node.

        `reported` is the most that was free on any one.
        """
        left = resources.largest(self._left)
        if self._is_complete:
            return left

        return {**reported, resources.CPU: max(left.get(resources.CPU, 0), self._others)}


def of_rows(rows: Rows, largest: Mapping[str, int]) -> NodeRows | None:
    """Return the nodes of rows with the most free CPU; None if these are not known.

    `largest` is the most that any of them has, exactly.
    """
    if not rows.complete:
        return None

    nodes: list[Resources] = []
    listed = (row for alike in rows.alike for row in alike.rows)
    for row in sorted(listed, key=lambda row: -row.most.get(resources.CPU, 0)):
        most = {name: min(amount, largest.get(name, 0)) for name, amount in row.most.items()}
        nodes += [most] * min(row.count, _OF_ROWS - len(nodes))

    return NodeRows(nodes, is_complete=len(nodes) == rows.nodes)
