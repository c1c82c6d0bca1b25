"""Holds rejected pods until an event that may help them.

Pods whose rejections are equal form a group: an event is matched once for all of them, however many
there are. An event wakes a pod if a plugin that rejected it on that node registered for its kind;
a plugin may register for events anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from vnode.scheduling.events import EVERYTHING, ClusterEvent, ClusterEventWithHint, EventKind

Rejections: TypeAlias = Mapping[str, frozenset[str]]
"""Node name -> the plugins that rejected it."""

Signature: TypeAlias = frozenset[tuple[str, str]]
"""Rejections as pairs of node and plugin; equal rejections have the same."""


def signature(rejections: Rejections) -> Signature:
    """Return the rejections as pairs of node and plugin."""
    return frozenset((node, plugin) for node, plugins in rejections.items() for plugin in plugins)


class UnschedulablePods:
    """The UIDs of unschedulable pods, by what rejected them."""

    def __init__(self, registrations: Mapping[str, frozenset[ClusterEventWithHint]]) -> None:
        """Take plugin -> events that may undo its rejections; for others, all events may."""
        self._registrations = registrations
        # In the order in which they were added. No empty groups.
        self._groups: dict[Signature, dict[str, None]] = {}

    def add(self, uid: str, rejected: Signature) -> None:
        """Add a pod with its rejections."""
        self._groups.setdefault(rejected, {})[uid] = None

    def remove(self, uid: str, rejected: Signature) -> None:
        """Remove a pod, which was added with these rejections."""
        group = self._groups[rejected]
        del group[uid]
        if not group:
            del self._groups[rejected]

    def woken_by(self, event: ClusterEvent) -> list[str]:
        """Return the UIDs of pods that the event may help. They are not removed."""
        groups = (group for rejected, group in self._groups.items() if self.wakes(event, rejected))
        return [uid for group in groups for uid in group]

    def wakes(self, event: ClusterEvent, rejected: Signature) -> bool:
        """Return whether the event may undo one of the rejections."""
        if not rejected:
            return True

        nodes = set()
        for node, plugin in rejected:
            nodes.add(node)
            for hint in self._registrations.get(plugin, EVERYTHING):
                here = hint.anywhere or event.node is None or event.node == node
                if hint.kind is event.kind and here:
                    return True

        # A node on which the pod was not tried may take it, whatever rejected it elsewhere.
        return event.kind is EventKind.NODE_ADD and event.node not in nodes
