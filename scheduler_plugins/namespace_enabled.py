"""PreFilter: only namespaces with the label take part, and none that is being terminated.

The label is a cluster administrator's decision that pods of a namespace may leave the cluster. The
API server calls the webhook only where it is set, but a user may write `schedulerName` himself.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import PreFilterPlugin
from vnode.scheduling.snapshot import Snapshot
from vnode.scheduling.status import SKIP, Status


class NamespaceEnabled(PreFilterPlugin):
    """Rejects pods of namespaces that take no part, until they get the label."""

    NAME = "NamespaceEnabled"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the event by which a namespace gets the label."""
        return [ClusterEventWithHint(EventKind.NAMESPACE_LABEL, anywhere=True)]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Reject all nodes, or skip: there is nothing to filter by."""
        refusal = self.handle.namespace_refusal(objects.namespace(pod))
        return status.unresolvable(refusal) if refusal else SKIP
