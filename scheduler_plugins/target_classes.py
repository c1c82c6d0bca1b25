"""Filter: a target must have the RuntimeClass that the pod names, and a PriorityClass for it.

Without one its API server refuses the delegate. Targets that do not say what they have, as those of
Admiralty, are asked by a candidate.
"""

from __future__ import annotations

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.priorities import PriorityMapping
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status


class TargetClasses(FilterPlugin):
    """Compares names: what a class means is the target's own."""

    NAME = "TargetClasses"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return the events by which a target may have another class."""
        return [
            ClusterEventWithHint(EventKind.NODE_ADD),
            ClusterEventWithHint(EventKind.TARGET_CHANGED),
        ]

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node whose target lacks a class, by its name and with the cure."""
        spec, classes = objects.spec(pod), node.virtual.classes
        reasons = []
        runtime, present = spec.get("runtimeClassName"), classes.runtime_classes
        if runtime and present is not None and runtime not in present:
            reasons.append(f'RuntimeClass "{runtime}" not found: create it in the target')

        priority = PriorityMapping(node.virtual.priority_classes, classes).choose(spec)
        if priority.refusal:
            reasons.append(priority.refusal)

        return status.unresolvable(*reasons) if reasons else SUCCESS
