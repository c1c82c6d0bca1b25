"""Filter: a pod that came from another cluster is not sent to one that it came through."""

from __future__ import annotations

from vnode.api import route
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin, PreFilterPlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status


class Chain(PreFilterPlugin, FilterPlugin):
    """Relies on the clusters that targets say they are; no target can make a pod go in a circle."""

    NAME = "Chain"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which there is another target, or one names its cluster."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_CHANGED),
        ]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Skip pods of this cluster, which may go anywhere; else collect the clusters behind it."""
        if not route.is_delegate(pod):
            return SKIP

        try:
            state.write(self.NAME, route.path_of(pod))
        except ConfigError as error:
            return status.unresolvable(str(error))

        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject clusters that the pod came through, and those that may be one of them."""
        uid = node.virtual.cluster_uid
        if uid is None:
            return status.unschedulable("its cluster is not known yet")

        if not uid:
            return status.unresolvable(
                "its cluster is unknown: check that the vnode agent runs there"
            )

        return status.unresolvable(route.CAME_THROUGH) if uid in state.read(self.NAME) else SUCCESS
