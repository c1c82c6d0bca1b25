"""Holds what this replica has found about each Target, for the leader to write.

That is the conditions which a Target should have, and which cluster answers for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.targets import cluster_identity, conditions
from vnode.targets.cluster_identity import Expected
from vnode.targets.reporting import TargetFinding
from vnode.targets.target_lister import TargetLister


class TargetFindings:
    """Findings about Targets, by key; `changed` is called with the key of each that may differ."""

    def __init__(self, targets: TargetLister, clock: Clock) -> None:
        self.changed: Listeners[TargetKey] = Listeners()
        self._targets = targets
        self._clock = clock
        self._conditions: dict[TargetKey, Objects] = {}  # those that a Target should have
        # By UID of a Target: the cluster that it was found to be, for as long as the Target exists.
        self._clusters: dict[TargetKey, tuple[str, str]] = {}

    def __iter__(self) -> Iterator[TargetKey]:
        return iter(list(self._conditions))

    def get(self, key: TargetKey) -> TargetFinding | None:
        """Return what is to be written about a Target; None if there is nothing."""
        obj, found = self._targets.get(key), self._conditions.get(key)
        if obj is None or not found:
            return None

        return TargetFinding(obj, found, cluster_identity.to_record(obj, self._cluster(key, obj)))

    def set(self, key: TargetKey, wanted: Objects) -> None:
        """Set the conditions that a Target should have."""
        self._conditions[key] = wanted
        self.changed.call(key)

    def set_problem(self, key: TargetKey, obj: Object, reason: str, message: str) -> None:
        """Set the conditions to why there is no connection."""
        told = False, reason, message, self._clock.now()
        self.set(key, [conditions.ready(obj, *told), conditions.connected(obj, *told)])

    def expected(self, key: TargetKey) -> Expected:
        """Return which cluster the Target may be."""
        obj = self._targets.get(key)
        return cluster_identity.expected(obj, self._cluster(key, obj)) if obj else Expected()

    def set_cluster(self, key: TargetKey, cluster: str) -> None:
        """Note the UID of the cluster that answers for a Target."""
        if (obj := self._targets.get(key)) is not None:
            self._clusters[key] = objects.uid(obj), cluster
            self.changed.call(key)

    def was_connected(self, key: TargetKey) -> bool:
        """Tell whether a cluster has answered for a Target, and is not cleaned up."""
        return key in self._clusters

    def of_node(self, node: str) -> TargetKey | None:
        """Return which Target a virtual node stands for; None if there is no such Target."""
        return self._targets.of_node(node)

    def found(self, key: TargetKey) -> Object | None:
        """Return the condition Connected that a Target should have, None if that is not known
        yet."""
        found = self._conditions.get(key) or ()
        return next((each for each in found if each["type"] == conditions.CONNECTED), None)

    def recorded(self, key: TargetKey) -> Object | None:
        """Return the condition Connected that a Target has."""
        return conditions.recorded(self._targets.get(key) or {})

    def subscribe(self, changed: Callable[[TargetKey], None]) -> None:
        """Call `changed` with the key of each Target of which something else is found."""
        self.changed.add(changed)

    def forget_conditions(self, key: TargetKey) -> None:
        """Drop the conditions of a Target that is gone."""
        self._conditions.pop(key, None)
        self.changed.call(key)

    def forget_cluster(self, key: TargetKey) -> None:
        """Drop the cluster of a Target that is gone, once nothing is to be cleaned up there."""
        self._clusters.pop(key, None)

    def _cluster(self, key: TargetKey, obj: Object) -> str:
        """Return the UID of the cluster that the Target was last found to be, "" if unknown."""
        uid, cluster = self._clusters.get(key, ("", ""))
        return cluster if uid == objects.uid(obj) else ""
