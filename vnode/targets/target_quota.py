"""Bounds the Targets of each namespace that are connected: the oldest ones are.

Whoever administers a namespace may make Targets, and each takes memory, connections and a port of
the agent, and a Node of the cluster. As with a ResourceQuota, what is there stays, and what comes
later does not fit; when a Target is deleted, the next one in order of creation takes its place.
ClusterTargets are made by administrators of the cluster, and not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.oldest_first import OldestFirst
from vnode.api.target_key import TargetKey

EXCEEDED: Final = "TooManyTargets"
"""The reason of the condition of a Target that does not fit."""


class TargetQuota:
    """Tells which Targets fit; None as the limit means all. `on_target` subscribes to Targets."""

    def __init__(self, limit: int | None) -> None:
        self._targets = OldestFirst(limit)
        self._changed: Listeners[TargetKey] = Listeners()

    def fits(self, key: TargetKey) -> bool:
        """Tell whether a Target may be connected."""
        return self._targets.fits(key.namespace, key.name)

    def subscribe(self, changed: Callable[[TargetKey], None]) -> None:
        """Call `changed` with each Target that fits from now on, or no longer does."""
        self._changed.add(changed)

    def on_target(self, old: Object | None, new: Object | None) -> None:
        """Note that a Target came or went."""
        name = self._targets.observe(old, new)
        if name is not None:
            self._changed.call(TargetKey(objects.namespace(objects.latest(old, new)), name))

    def explain(self, key: TargetKey) -> str:
        """Return why a Target does not fit, with the cure."""
        return (
            f"namespace {key.namespace} has more Targets than are connected, which are the oldest "
            f"{self._targets.limit}: delete those that are not needed, or have "
            "targetsPerNamespace raised in the configuration of the agent"
        )
