"""Filter: the quotas and limits of a pod's namespace in the target must not forbid it.

What is used is what the target reported last, and what was promised to other pods since. How many
pods there may be is certain. Whether the pod fits otherwise is for admission there to decide, which
may change it, so it is asked for (`target_answer`); once it has refused a pod, others like that do
not go there. Targets that do not let their quotas be read, as those of Admiralty, are asked by a
candidate.
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
    """Rejects targets that are full, or that have refused a pod like this one.

    A pod whose delegate is there already counts in what is used: it needs no more room.
    """

    NAME = "TargetResourceQuota"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which there may be room in a quota, or another answer."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_CHANGED),
            ClusterEventWithHint(EventKind.TARGET_QUOTA),
            ClusterEventWithHint(EventKind.POD_FORGOTTEN),
            ClusterEventWithHint(EventKind.OVERRIDES),
        ]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Skip pods of namespaces that have no quota anywhere."""
        if not snapshot.quotas.concerns(objects.namespace(pod)):
            return SKIP

        state.write(self.NAME, snapshot.quotas)
        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node whose target has no place for the pod in a quota, by its name."""
        now = self.handle.clock.monotonic()
        quotas = state.read(self.NAME)
        refusals = quotas.refusals(pod, node.name, now, asks=state.asks)
        if not refusals or self.handle.is_charged(pod, node.name):
            return SUCCESS

        return status.unschedulable(*refusals)
