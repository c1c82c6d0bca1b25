"""Filter: a cordoned virtual node takes only pods that tolerate that."""

from __future__ import annotations

from vnode.api import objects, taints
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status


class NodeUnschedulable(FilterPlugin):
    """Makes `kubectl cordon` of a virtual node close the whole target."""

    NAME = "NodeUnschedulable"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which a node may be uncordoned."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.NODE_TAINTS),
        ]

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Treat a cordon as a taint that can be tolerated, as kube-scheduler does."""
        if not node.unschedulable:
            return SUCCESS

        tolerations = objects.spec(pod).get("tolerations") or ()
        if taints.untolerated((taints.UNSCHEDULABLE,), tolerations) is None:
            return SUCCESS

        return status.unresolvable("the virtual node was unschedulable (cordoned)")
