"""Filter: reject targets that do not answer."""

from __future__ import annotations

from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status


class TargetHealth(FilterPlugin):
    """Relies on the agent's own probes, which are sooner than the node's taints."""

    NAME = "TargetHealth"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which the target may answer again."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_HEALTH),
        ]

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node whose target does not answer, for the agent's reason.

        One that is being connected is waited for: when an agent starts, plans are not to go by
        which target answers first.
        """
        if node.virtual.healthy:
            return SUCCESS

        why = node.virtual.unhealthy_reason or "not reachable"
        return status.pending(why) if node.virtual.connecting else status.unresolvable(why)
