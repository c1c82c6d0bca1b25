"""Filter: a Target takes pods of its own namespace only, a ClusterTarget those of all."""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status


class TargetNamespace(FilterPlugin):
    """Compares namespaces. They are never mapped nor created: the target must have the pod's."""

    NAME = "TargetNamespace"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which a Target may take another namespace."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_CHANGED),
        ]

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node whose Target is of another namespace."""
        namespace = objects.namespace(pod)
        only = node.virtual.target_namespace
        if only is not None and only != namespace:
            return status.unresolvable(f'takes only pods of namespace "{only}"')

        return SUCCESS
