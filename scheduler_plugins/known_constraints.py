"""PreFilter: a pod goes nowhere while nobody knows which constraints its user gave it.

The webhook has replaced them, and the manifest in which it has saved them is not believed: another
webhook's, such as Admiralty's, or one that somebody has changed. Without them the pod could run on
a node, or in a cluster, that it must not be on.
"""

from __future__ import annotations

from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint
from vnode.scheduling.plugin import PreFilterPlugin
from vnode.scheduling.snapshot import Snapshot
from vnode.scheduling.status import SKIP, Status


class KnownConstraints(PreFilterPlugin):
    """Rejects pods whose constraints are not known, until they are changed."""

    NAME = "KnownConstraints"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return no event: a change of the pod itself has it tried again."""
        return []

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Reject all nodes, or skip: there is nothing to filter by."""
        refusal = self.handle.manifest_refusal(pod)
        return status.unresolvable(refusal) if refusal else SKIP
