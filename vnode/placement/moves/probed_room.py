"""Remembers for one workload since when each cluster has had room for a pod of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection


class ProbedRoom:
    """Since when there has been room for a workload, by node.

    That is what `failback` of mode Probe goes by: since when the scheduler's filters would have let
    a pod go to a better cluster. It costs no candidate, and is as good as what targets say of their
    free resources: a pod that overflowed from a cluster has shown that this was not enough, so the
    time begins anew then.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # by node

    def since(self, node: str) -> float | None:
        """Return since when a pod would have passed, None if it would not."""
        return self._since.get(node)

    def observe(self, nodes: Collection[str], now: float, moving: Collection[str] = ()) -> None:
        """Take note that a pod would pass on these nodes now, and on no others.

        Where pods are being moved to, their places count twice for a moment: that closes no node.
        """
        still = {node: since for node, since in self._since.items() if node in moving}
        self._since = {**still, **{node: self._since.get(node, now) for node in nodes}}

    def begin_at(self, node: str, moment: float) -> bool:
        """Take note that a pod had waited for the node in vain until then.

        Return whether the node was open all the time: then what it says cannot be relied on.
        """
        if self._since.get(node, math.inf) > moment:
            return False

        self._since[node] = moment
        return True
