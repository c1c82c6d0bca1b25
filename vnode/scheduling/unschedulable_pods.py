"""Rejected pods that sleep until something happens that may help them.

Pods whose rejections are equal sleep together: an event is matched once for all of them, however
many there are. It wakes those of whom one of the plugins that said no, on a node, has registered
for events of its kind, there or anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from vnode.scheduling.events import EVERYTHING, ClusterEvent, ClusterEventWithHint, EventKind

Rejections: TypeAlias = Mapping[str, frozenset[str]]
"""Node name -> the plugins that said no there."""

Signature: TypeAlias = frozenset[tuple[str, str]]
"""The same as pairs of node and plugin: what equal rejections have in common."""


def signature(rejections: Rejections) -> Signature:
    """What these rejections come to."""
    return frozenset((node, plugin) for node, plugins in rejections.items() for plugin in plugins)


class UnschedulablePods:
    """The UIDs of sleeping pods, by what rejected them."""

    def __init__(self, registrations: Mapping[str, frozenset[ClusterEventWithHint]]) -> None:
        """`registrations`: plugin -> events that may undo its no; of others, all events do."""
        self._registrations = registrations
        # In the order in which they fell asleep. No empty groups.
        self._groups: dict[Signature, dict[str, None]] = {}

    def add(self, uid: str, rejected: Signature) -> None:
        """The pod sleeps from now on."""
        self._groups.setdefault(rejected, {})[uid] = None

    def remove(self, uid: str, rejected: Signature) -> None:
        """The pod, which was added with these rejections, sleeps no longer."""
        group = self._groups[rejected]
        del group[uid]
        if not group:
            del self._groups[rejected]

    def that_wake(self, event: ClusterEvent) -> list[str]:
        """Whom the event may help. They are not removed."""
        groups = (group for rejected, group in self._groups.items() if self.wakes(event, rejected))
        return [uid for group in groups for uid in group]

    def wakes(self, event: ClusterEvent, rejected: Signature) -> bool:
        """Whether the event may undo one of the rejections."""
        if not rejected:
            return True

        nodes = set()
        for node, plugin in rejected:
            nodes.add(node)
            for wish in self._registrations.get(plugin, EVERYTHING):
                here = wish.anywhere or event.node is None or event.node == node
                if wish.kind is event.kind and here:
                    return True

        # A node that the pod has not been tried on is a chance, however its rejections came about.
        return event.kind is EventKind.NODE_ADD and event.node not in nodes
