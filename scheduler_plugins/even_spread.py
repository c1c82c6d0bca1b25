"""Score: prefer targets with fewer pods of the same owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_plugins import normalizing
from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint
from vnode.scheduling.plugin import PreScorePlugin, ScorePlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status


class EvenSpread(PreScorePlugin, ScorePlugin):
    """What a Deployment's replicas get without asking: not all eggs in one cluster."""

    NAME = "EvenSpread"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """It rejects nothing."""
        return []

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """A pod without a controller has no siblings to keep away from."""
        owner = objects.controller_uid(pod)
        if not owner:
            return SKIP

        state.write(self.NAME, snapshot.placements.owned(owner))
        return SUCCESS

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """The number of siblings."""
        siblings: Mapping[str, int] = state.read(self.NAME)
        return siblings.get(node.name, 0)

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """Fewer is better."""
        normalizing.by_largest(scores, reverse=True)
