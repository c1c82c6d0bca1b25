"""Filter: a Target takes pods of its own namespace, and only where that namespace exists there."""

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
    """Namespaces are never mapped nor created: the pod's must be the Target's and exist there."""

    NAME = "TargetNamespace"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A Target may be changed."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_CHANGED),
        ]

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """A ClusterTarget takes pods of all namespaces."""
        namespace = objects.namespace(pod)
        only = node.virtual.target_namespace
        if only is not None and only != namespace:
            return status.unresolvable(f'takes only pods of namespace "{only}"')

        return SUCCESS
