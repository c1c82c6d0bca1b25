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
    """Goes by what targets say of themselves; what a target says cannot make a pod go round."""

    NAME = "Chain"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Another target, or one that says by now which cluster it is."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_CHANGED),
        ]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Pods of this cluster may go anywhere."""
        if not route.is_delegate(pod):
            return SKIP

        try:
            state.write(self.NAME, route.path_of(pod))
        except ConfigError as error:
            return status.unresolvable(str(error))

        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Nothing is sent on to a cluster that may be any."""
        uid = node.virtual.cluster_uid
        if uid is None:
            return status.unschedulable("has not said yet which cluster it is")

        if not uid:
            return status.unresolvable("does not say which cluster it is: does vnode run there?")

        return status.unresolvable(route.CAME_THROUGH) if uid in state.read(self.NAME) else SUCCESS
