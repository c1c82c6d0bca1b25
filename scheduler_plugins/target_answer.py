"""Filter: where a pod seems not to fit into quotas or limits, one asks, and others like it wait.

The target's own policies decide what a pod counts for there, so that only a candidate finds out.
Thousands of pods of one owner need not all find out the same. Such a pod waits for the cluster that
is planned for it, as for room.
"""

from __future__ import annotations

from scheduler_plugins.target_quota import TargetResourceQuota
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status


class TargetAnswer(TargetResourceQuota):
    """Rejects targets that are being asked for a pod like this one.

    A pod that reserves no place is not asked for: it goes where it seems to fit. One that was
    refused, and seems to fit by now, need not wait until the target tries it again.
    """

    NAME = "TargetAnswer"

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node while others ask its target, if the pod seems not to fit there."""
        quotas, now = state.read(self.NAME), self.handle.clock.monotonic()
        why = quotas.waits(pod, node.name, now, asks=state.asks)
        if why:
            is_charged = self.handle.is_charged(pod, node.name)
            return SUCCESS if is_charged else status.pending(why)

        if self.handle.is_refused(pod, node.name) and quotas.is_outdated(pod, node.name):
            return status.pending("it seems to fit by now, and is asked for anew")

        return SUCCESS
