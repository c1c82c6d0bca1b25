"""Sums up how far the workloads of one Rebalance are. No I/O.

A Rebalance may be for thousands of workloads, most of which are at their plan at once, and run for
long because of one. So only those are kept that are not, and of the others what they add up to.
"""

from __future__ import annotations

from collections import Counter

from vnode.api.clock import Clock
from vnode.api.slices import in_slices
from vnode.placement.moves.demands import WorkloadRebalance
from vnode.placement.moves.rebalance_status import RebalanceSums
from vnode.planning.workload_key import PlannedWorkload


class RebalanceProgress:
    """What a Rebalance asks of workloads, and how far they have come."""

    def __init__(self) -> None:
        self.unmet: dict[PlannedWorkload, WorkloadRebalance] = {}
        """What it asks of those that have not been at their plan, when they were summed up last."""
        self._met = 0
        self._moved = 0  # of those
        self._seen: dict[PlannedWorkload, tuple[int, int, int]] = {}  # of `unmet`

    def ask(self, workload: PlannedWorkload, demand: WorkloadRebalance) -> None:
        """Add a workload."""
        self.unmet[workload] = demand

    async def sums(self, clock: Clock) -> RebalanceSums:
        """Sum up, in slices."""
        moved, left, under_way, why, is_news = 0, 0, 0, Counter[str](), False
        async for key, demand in in_slices(tuple(self.unmet.items()), clock):
            state = (demand.moved, demand.left, demand.under_way)
            is_news |= demand.is_met or self._seen.get(key) != state
            if demand.is_met:
                del self.unmet[key]
                self._seen.pop(key, None)
                self._met += 1
                self._moved += demand.moved
                continue

            self._seen[key] = state
            moved, left, under_way = moved + demand.moved, left + demand.left, under_way + state[2]
            if demand.why:
                why[demand.why] += 1

        return RebalanceSums(
            workloads=self._met + len(self.unmet),
            moved=self._moved + moved,
            left=left,
            under_way=under_way,
            unmet=len(self.unmet),
            why=why.most_common(1)[0][0] if why else "",
            is_news=is_news,
        )
