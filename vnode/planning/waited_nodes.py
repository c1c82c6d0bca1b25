"""Knows for which nodes pods of a workload have waited, by what they request, and since when.

That one waits for a node shows others that it is full, but only for pods that request as much.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from vnode.planning.pod_size import PodSize
from vnode.planning.workload_pod import WorkloadPod

_SIZES_KEPT: Final = 32  # of pods of one workload, each of which may be of a size of its own


class WaitedNodes:
    """Those of one workload. `pending` yields its pods that have no node."""

    def __init__(self, pending: Callable[[], Iterable[WorkloadPod]]) -> None:
        self._pending = pending
        # Node -> size -> when such a pod last turned to another node, after waiting for this one in
        # vain. Until one is bound there it counts as full for a while, also when no pod waits there
        # any more.
        self._saturated: dict[str, dict[PodSize, float]] = {}
        # Size -> node -> since when a pod waits there that is not larger; of the sizes that were
        # asked for last, each with all nodes where one waits.
        self._oldest: OrderedDict[PodSize, dict[str, float]] = OrderedDict()

    def since(self, node: str, size: PodSize) -> float:
        """Return since when a pod has been waiting for a place on the node; infinity if none is.

        One that is larger than that size does not count: there may be room for a smaller one.
        """
        oldest = self._oldest.get(size)
        if oldest is None:
            oldest = self._oldest[size] = self._find_oldest(size)
            if len(self._oldest) > _SIZES_KEPT:
                self._oldest.popitem(last=False)

        return oldest.get(node, math.inf)

    def _find_oldest(self, size: PodSize) -> dict[str, float]:
        """Look once at the pods that wait, for all nodes: both may be many."""
        found: dict[str, float] = {}
        for member in self._pending():
            waits = tuple(member.waits())
            if waits and member.size.is_within(size):
                for node, since in waits:
                    found[node] = min(since, found.get(node, math.inf))

        return found

    def count(self, member: WorkloadPod, step: int) -> None:
        """Note that a pod waits as it says (1), or has waited until now (-1)."""
        waits = tuple(member.waits())
        for size in [each for each in self._oldest if waits and member.size.is_within(each)]:
            oldest = self._oldest[size]
            if step > 0:
                for node, since in waits:
                    oldest[node] = min(since, oldest.get(node, math.inf))
            elif any(since <= oldest.get(node, math.inf) for node, since in waits):
                del self._oldest[size]

    def saturated(self, size: PodSize) -> dict[str, float]:
        """Return the nodes for which pods, none larger than that, have waited in vain.

        With the moment at which one last turned to another node.
        """
        found = {
            node: max((at for each, at in by.items() if each.is_within(size)), default=-math.inf)
            for node, by in self._saturated.items()
        }
        return {node: at for node, at in found.items() if at > -math.inf}

    def note_full(self, node: str, size: PodSize, now: float) -> None:
        """Note that a pod of that size has turned to another node."""
        sizes = self._saturated.setdefault(node, {})
        sizes.pop(size, None)  # so that the last one comes last
        sizes[size] = now
        if len(sizes) > _SIZES_KEPT:
            del sizes[next(iter(sizes))]

    def note_bound(self, node: str) -> None:
        """Note that a pod was bound to a node: it is not full."""
        self._saturated.pop(node, None)
