"""Score: prefer targets whose resources would be used in equal parts."""

from __future__ import annotations

import math

import msgspec

from scheduler_plugins import resources_fit
from scheduler_plugins.resources_fit import ResourceWeight
from vnode.api.objects import Object
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint
from vnode.scheduling.plugin import MAX_SCORE, ScorePlugin
from vnode.scheduling.snapshot import VirtualNodeInfo


class BalancedAllocationArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceWeight, ...] = resources_fit.CPU_AND_MEMORY


class NodeResourcesBalancedAllocation(ScorePlugin):
    """Keeps targets from running out of memory with idle CPUs, or the other way round."""

    NAME = "NodeResourcesBalancedAllocation"
    Args = BalancedAllocationArgs

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return no events, since it rejects nothing."""
        return []

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return 100 less the standard deviation of the fractions in use, in percent."""
        used = resources_fit.fractions_used(node, state.requests(pod), self.args.resources)
        if len(used) < 2:
            return MAX_SCORE if used else 0

        mean = sum(part for part, _ in used) / len(used)
        variance = sum((part - mean) ** 2 for part, _ in used) / len(used)
        return round(MAX_SCORE * (1 - math.sqrt(variance)))
