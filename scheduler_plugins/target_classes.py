"""Filter: a target must have the RuntimeClass and the PriorityClass that the pod names.

Without one its API server refuses the delegate. Targets that do not say what they have, as those of
Admiralty, are asked by a candidate.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling import status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import FilterPlugin
from vnode.scheduling.snapshot import VirtualNodeInfo
from vnode.scheduling.status import SUCCESS, Status

_EVERYWHERE: Final = frozenset({"system-cluster-critical", "system-node-critical"})


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
        wanted = (
            ("RuntimeClass", spec.get("runtimeClassName"), classes.runtime_classes),
            ("PriorityClass", spec.get("priorityClassName"), classes.priority_classes),
        )
        reasons = [
            f'{kind} "{name}" not found: create it in the target'
            for kind, name, present in wanted
            if name and _lacks(present, name)
        ]
        return status.unresolvable(*reasons) if reasons else SUCCESS


def _lacks(present: AbstractSet[str] | None, name: str) -> bool:
    return present is not None and name not in present and name not in _EVERYWHERE
