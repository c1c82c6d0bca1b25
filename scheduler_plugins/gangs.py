"""PreEnqueue and Filter for gangs: pods that start together in one target, or not at all.

A pod of a gang is held until so many of it are there as it takes. Where they go is chosen for all
of them in one step (`vnode.pods.source.gang_rounds`), and no plugin's business. A gang that has
waited long may keep the room of one target, and other pods are kept off there.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import EVERYTHING, ClusterEventWithHint
from vnode.scheduling.plugin import FilterPlugin, PreEnqueuePlugin, PreFilterPlugin
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status


class StartsTogether(PreEnqueuePlugin, PreFilterPlugin, FilterPlugin):
    """Holds pods of incomplete gangs, and keeps others off the room that is kept for a gang."""

    NAME = "Gangs"

    def events_to_register(self) -> frozenset[ClusterEventWithHint]:
        """Return all events: any may make room for a gang."""
        return EVERYTHING

    def pre_enqueue(self, pod: Object) -> Status:
        """Hold a pod until its gang is complete."""
        gangs = self.handle.gangs
        if not gangs:
            return SUCCESS

        why = gangs.hold(pod)
        return status.unresolvable(why) if why else SUCCESS

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Skip all pods while no room is kept, and those for which it is."""
        gangs = self.handle.gangs
        kept = gangs.kept if gangs is not None else None
        if gangs is None or kept is None:
            return SKIP

        gang = gangs.of(objects.uid(pod))
        if gang is not None and (gang.key == kept.key or gang.place()):
            return SKIP

        if not kept.keeps_off(pod, state.requests(pod)):
            return SKIP

        state.write(self.NAME, kept)
        return SUCCESS

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject the target whose room is kept."""
        kept = state.read(self.NAME)
        if node.name != kept.node:
            return SUCCESS

        return status.unresolvable(f"its room is kept for gang {kept.key}, which has waited long")
