"""Finds Targets by the names that are made of theirs, and those of a namespace.

Whoever administers a namespace may make thousands of Targets, of which few are connected, and make
and delete more all the time. What is asked about one Target or one namespace, or follows from one
event, looks at no others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.targets import model


class TargetIndex:
    """Knows the Targets of which it was told; `on_target` subscribes to informers."""

    def __init__(self) -> None:
        # A Target is in all three, or in none; no namespace is empty.
        self._by_node: dict[str, TargetKey] = {}
        self._by_finalizer: dict[str, TargetKey] = {}
        self._of_namespace: dict[str, dict[TargetKey, None]] = {}

    @property
    def by_node(self) -> Mapping[str, TargetKey]:
        """All keys, by the names of the virtual nodes."""
        return self._by_node

    @property
    def by_finalizer(self) -> Mapping[str, TargetKey]:
        """All keys, by their finalizers on pods."""
        return self._by_finalizer

    def of_namespace(self, namespace: str) -> Collection[TargetKey]:
        """Return the keys of one namespace; those of ClusterTargets for ""."""
        return self._of_namespace.get(namespace, {}).keys()

    def on_target(self, old: Object | None, new: Object | None) -> None:
        """Note that a Target came or went."""
        key = model.key_of(objects.latest(old, new))
        if old is None and new is not None:
            self._by_node[key.node_name] = self._by_finalizer[key.finalizer] = key
            self._of_namespace.setdefault(key.namespace, {})[key] = None
        elif old is not None and new is None:
            self._remove(key)

    def _remove(self, key: TargetKey) -> None:
        self._by_node.pop(key.node_name, None)
        self._by_finalizer.pop(key.finalizer, None)
        beside = self._of_namespace.get(key.namespace, {})
        beside.pop(key, None)
        if not beside:
            self._of_namespace.pop(key.namespace, None)
