"""PreEnqueue: a pod with scheduling gates is not tried, and the API server would not bind it."""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.plugin import PreEnqueuePlugin
from vnode.scheduling.status import SUCCESS, Status


class SchedulingGates(PreEnqueuePlugin):
    """Holds pods until their last gate is removed."""

    NAME = "SchedulingGates"

    def pre_enqueue(self, pod: Object) -> Status:
        """Hold the pod while it has gates, and name them."""
        gates = objects.spec(pod).get("schedulingGates") or ()
        if not gates:
            return SUCCESS

        names = ", ".join(str(gate.get("name")) for gate in gates)
        return status.unresolvable(f"waiting for scheduling gates: {names}")
