"""Score: prefer targets with fewer pods of the same owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_plugins import normalizing
from vnode.api import owners
from vnode.api.objects import Object
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint
from vnode.scheduling.plugin import PreScorePlugin, ScorePlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status


class EvenSpread(PreScorePlugin, ScorePlugin):
    """Spreads the replicas of a Deployment over targets without a topology spread constraint."""

    NAME = "EvenSpread"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return no events, since it rejects nothing."""
        return []

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Count the pods of the same controller; skip a pod that has none."""
        owner = owners.owner_key(pod)
        if owner is None:
            return SKIP

        state.write(self.NAME, snapshot.pod_counts.owned(owner))
        return SUCCESS

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return how many pods of the same controller are on the node."""
        siblings: Mapping[str, int] = state.read(self.NAME)
        return siblings.get(node.name, 0)

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """Turn fewer pods into a higher score."""
        normalizing.by_largest(scores, reverse=True)
