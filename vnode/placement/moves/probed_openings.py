"""Remembers since when the scheduler's filters would have let a pod go to a better cluster. No I/O.

This is what `failback` of mode Probe goes by. It costs no candidate, and is as good as what targets
say of their free resources: a pod that overflowed from a cluster has shown that this was not
enough, so the time begins anew then.
"""

from __future__ import annotations

import math
from collections.abc import Collection


class ProbedOpenings:
    """Implements `vnode.planning.move_policy.Openings`."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str, float]] = {}  # by workload, then by node; none empty

    def since(self, workload: str, node: str) -> float | None:
        """Return since when a pod of the workload would have passed, None if it would not."""
        return self._since.get(workload, {}).get(node)

    def refuted(self, _workload: str, _node: str) -> float | None:
        """Return None: what filters say they say of all pods of a workload."""
        return None

    def observe(
        self, workload: str, nodes: Collection[str], now: float, moving: Collection[str] = ()
    ) -> None:
        """Take note that a pod would pass on these nodes now, and on no others.

        Where pods are being moved to, their places count twice for a moment: that closes no node.
        """
        before = self._since.pop(workload, {})
        still = {node: since for node, since in before.items() if node in moving}
        if found := {**still, **{node: before.get(node, now) for node in nodes}}:
            self._since[workload] = found

    def begin_at(self, workload: str, node: str, moment: float) -> bool:
        """Take note that a pod had waited for the node in vain until then.

        Return whether the node was open all the time: then what it says cannot be relied on.
        """
        known = self._since.get(workload, {})
        if known.get(node, math.inf) > moment:
            return False

        known[node] = moment
        return True
