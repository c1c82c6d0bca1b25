"""Remembers for one workload since when each cluster has had room for a pod of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType


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

    def observe(
        self,
        nodes: Collection[str],
        now: float,
        moving: Collection[str] = (),
        waited: Mapping[str, float] = MappingProxyType({}),
    ) -> set[str]:
        """Take note that a pod would pass on these nodes now, and on no others.

        Where pods are being moved to, their places count twice for a moment: that closes no node.
        Until the moments in `waited` pods had waited for these nodes in vain; return those that
        were open all the time: what they say cannot be relied on, and their time begins anew then.
        """
        still = {node: since for node, since in self._since.items() if node in moving}
        self._since = {**still, **{node: self._since.get(node, now) for node in nodes}}
        in_vain = {n for n, moment in waited.items() if self._since.get(n, math.inf) <= moment}
        self._since.update({node: waited[node] for node in in_vain})
        return in_vain
