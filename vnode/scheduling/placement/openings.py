"""Remembers since when the scheduler's filters would have let a pod go to a better cluster. No I/O.

This is what `failback` of mode Probe goes by. It costs no candidate, and is as good as what targets
say of their free resources: a pod that overflowed from a cluster has shown that this was not
enough, so the time begins anew then.
"""

from __future__ import annotations

from collections.abc import Collection


class ProbedOpenings:
    """Implements `vnode.scheduling.placement.moves.Openings`."""

    def __init__(self) -> None:
        self._since: dict[str, dict[str, float]] = {}  # by workload, then by node; none empty

    def since(self, workload: str, node: str) -> float | None:
        """Return since when a pod of the workload would have passed, None if it would not."""
        return self._since.get(workload, {}).get(node)

    def observe(self, workload: str, nodes: Collection[str], now: float) -> None:
        """Take note that a pod would pass on these nodes now, and on no others."""
        before = self._since.pop(workload, {})
        if nodes:
            self._since[workload] = {node: before.get(node, now) for node in nodes}

    def close(self, workload: str, node: str) -> None:
        """Forget since when a node is open: a pod that went there did not start."""
        known = self._since.get(workload, {})
        known.pop(node, None)
        if not known:
            self._since.pop(workload, None)
