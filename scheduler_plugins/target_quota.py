"""Filter: a pod must fit into the quotas and limits of its namespace in the target.

Without room in a ResourceQuota, or against a LimitRange, its API server refuses the delegate. What
is used is what the target reported last, and what was promised to other pods since. Targets that do
not let their quotas be read, as those of Admiralty, are asked by a candidate.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin, PreFilterPlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status


class TargetResourceQuota(PreFilterPlugin, FilterPlugin):
    """Says what the target's API server would say of the delegate.

    A pod whose delegate is there already counts in what is used: it needs no more room.
    """

    NAME = "TargetResourceQuota"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which there may be room in a quota."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_CHANGED),
            ClusterEventWithHint(EventKind.TARGET_QUOTA),
            ClusterEventWithHint(EventKind.POD_FORGOTTEN),
        ]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Skip pods of namespaces that have no quota anywhere."""
        if not snapshot.quotas.concerns(objects.namespace(pod)):
            return SKIP

        state.write(self.NAME, snapshot.quotas)
        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node whose target has a quota that the pod would break, by its name."""
        refusals = state.read(self.NAME).refusals(pod, node.name)
        if not refusals or self.handle.is_charged(pod, node.name):
            return SUCCESS

        return status.unschedulable(*refusals)
