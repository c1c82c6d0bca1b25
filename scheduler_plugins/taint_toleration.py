"""Filter by NoSchedule and NoExecute taints of virtual nodes, Score by PreferNoSchedule ones."""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_plugins import normalizing
from vnode.api import constraint_size, objects, taints
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status

_SOFT = (taints.PREFER_NO_SCHEDULE,)


class TaintToleration(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Reads the proxy's own tolerations; the webhook added the one for the provider's taint."""

    NAME = "TaintToleration"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which a taint may be gone."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.NODE_TAINTS),
        ]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Reject a pod with more tolerations than can be compared with each taint of each node."""
        tolerations = objects.spec(pod).get("tolerations") or ()
        try:
            constraint_size.check(tolerations, tolerations, "spec.tolerations")
        except ConfigError as error:
            return status.unresolvable(str(error))

        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node by its first taint that is not tolerated."""
        taint = taints.untolerated(node.taints, objects.spec(pod).get("tolerations") or ())
        if taint is None:
            return SUCCESS

        return status.unresolvable(f"had untolerated taint {taints.describe(taint)}")

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Skip Score if no node has a PreferNoSchedule taint."""
        soft = any(taint.get("effect") in _SOFT for node in nodes for taint in node.taints)
        return SUCCESS if soft else SKIP

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Count the PreferNoSchedule taints that are not tolerated."""
        tolerations = objects.spec(pod).get("tolerations") or ()
        return sum(
            taints.untolerated((taint,), tolerations, _SOFT) is not None for taint in node.taints
        )

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """Turn fewer taints into a higher score."""
        normalizing.by_largest(scores, reverse=True)
