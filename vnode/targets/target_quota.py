"""Bounds the Targets of each namespace that are connected: the oldest ones are.

Whoever administers a namespace may make Targets, and each takes memory, connections and a port of
the agent, and a Node of the cluster. As with a ResourceQuota, what is there stays, and what comes
later does not fit; when a Target is deleted, the next one in order of creation takes its place.
ClusterTargets are made by administrators of the cluster, and not counted.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Final, NamedTuple

from vnode.api import objects
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey

EXCEEDED: Final = "TooManyTargets"
"""The reason of the condition of a Target that does not fit."""


class _Rank(NamedTuple):
    """Sorts the Targets of a namespace."""

    created: str
    name: str


class TargetQuota:
    """Tells which Targets fit; None as the limit means all. `on_target` subscribes to Targets."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._ranks: dict[str, list[_Rank]] = {}  # by namespace; sorted, none empty
        self._created: dict[TargetKey, str] = {}
        self._changed: Listeners[TargetKey] = Listeners()

    def fits(self, key: TargetKey) -> bool:
        """Tell whether a Target may be connected."""
        created = self._created.get(key)
        if self._limit is None or created is None:
            return True

        ranks = self._ranks[key.namespace]
        return bisect_left(ranks, _Rank(created, key.name)) < self._limit

    def subscribe(self, changed: Callable[[TargetKey], None]) -> None:
        """Call `changed` with each Target that fits from now on, or no longer does."""
        self._changed.add(changed)

    def on_target(self, old: Object | None, new: Object | None) -> None:
        """Note that a Target came or went."""
        if old is None and new is not None:
            self._add(TargetKey(objects.namespace(new), objects.name(new)), new)
        elif old is not None and new is None:
            self._remove(TargetKey(objects.namespace(old), objects.name(old)))

    def explain(self, key: TargetKey) -> str:
        """Return why a Target does not fit, with the cure."""
        return (
            f"namespace {key.namespace} has more Targets than are connected, which are the oldest "
            f"{self._limit}: delete those that are not needed, or have targetsPerNamespace raised "
            "in the configuration of the agent"
        )

    def _add(self, key: TargetKey, target: Object) -> None:
        created = objects.created(target)
        self._created[key] = created
        ranks = self._ranks.setdefault(key.namespace, [])
        rank = _Rank(created, key.name)
        insort(ranks, rank)
        limit = self._limit
        if limit is not None and len(ranks) > limit and bisect_left(ranks, rank) < limit:
            self._changed.call(TargetKey(key.namespace, ranks[limit].name))

    def _remove(self, key: TargetKey) -> None:
        created = self._created.pop(key, None)
        if created is None:
            return

        ranks = self._ranks[key.namespace]
        index = bisect_left(ranks, _Rank(created, key.name))
        del ranks[index]
        limit = self._limit
        if limit is not None and index < limit <= len(ranks):
            self._changed.call(TargetKey(key.namespace, ranks[limit - 1].name))

        if not ranks:
            del self._ranks[key.namespace]
