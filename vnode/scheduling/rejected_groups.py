"""Finds the groups of rejected pods that an event may help, without a look at the others.

A tenant's pods can be rejected in as many ways as there are subsets of targets, and events of
everybody are about one target or another. So groups are found by who rejected them where, and, for
plugins that say whose pods matter, by the namespaces of these.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling.events import (
    EVERYTHING,
    ClusterEvent,
    ClusterEventWithHint,
    EventKind,
    EventReading,
    ReadPod,
)

Signature: TypeAlias = frozenset[tuple[str, str]]
"""Rejections as pairs of node and plugin; equal rejections have the same."""

Scope: TypeAlias = frozenset[str] | None
"""The namespaces whose pods concern a waiting pod; None: all."""

_ALL: Final = "*"  # in place of a namespace


@dataclass(frozen=True, slots=True)
class RejectedPod:
    """A pod that waits, and what plugins keep of it meanwhile."""

    pod: Object
    readings: Mapping[ReadPod, EventReading]


class GroupKey(NamedTuple):
    """What is equal for all pods of a group."""

    namespace: str
    rejected: Signature
    scope: Scope


@dataclass(slots=True, eq=False)
class RejectedGroup:
    """Pods of a namespace whose rejections are equal, and which the same others concern."""

    key: GroupKey
    number: int
    """Groups are numbered in the order in which they were made."""
    pods: dict[str, RejectedPod] = field(default_factory=dict)
    """By UID, in the order in which they were added."""

    def knows(self, node: str | None) -> bool:
        """Tell whether its pods were tried on a node."""
        return any(each == node for each, _plugin in self.key.rejected)


class _RejectedBy(NamedTuple):
    """By what a group is found: a plugin, perhaps on one node, or about pods of one namespace."""

    plugin: str
    node: str = _ALL
    about: str = ""


class RejectedGroups:
    """The groups that have pods; it takes plugin -> events that may undo its rejections."""

    def __init__(self, registrations: Mapping[str, frozenset[ClusterEventWithHint]]) -> None:
        self._registrations = dict(registrations)
        self._registered: dict[EventKind, list[tuple[str, ClusterEventWithHint]]] = {}
        for plugin, hints in registrations.items():
            self._register(plugin, hints)

        self._groups: dict[GroupKey, RejectedGroup] = {}
        self._without: dict[RejectedGroup, None] = {}  # that nobody has rejected
        self._found_by: dict[_RejectedBy, dict[RejectedGroup, None]] = {}  # none empty
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._groups)

    def hints(self, plugin: str) -> frozenset[ClusterEventWithHint]:
        """Return the events that may undo what a plugin has rejected: all, if it is not known."""
        if plugin not in self._registrations:
            self._registrations[plugin] = EVERYTHING
            self._register(plugin, EVERYTHING)

        return self._registrations[plugin]

    def put(self, key: GroupKey, uid: str, pod: RejectedPod) -> RejectedGroup:
        """Put a pod into its group, and return that."""
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = RejectedGroup(key, next(self._numbers))
            for index in self._indexes(group):
                index[group] = None

        group.pods[uid] = pod
        return group

    def remove(self, group: RejectedGroup, uid: str) -> None:
        """Take a pod out of its group."""
        del group.pods[uid]
        if group.pods:
            return

        del self._groups[group.key]
        self._without.pop(group, None)
        for entry in _entries(group.key, self._scoped(group.key.rejected)):
            index = self._found_by[entry]
            del index[group]
            if not index:
                del self._found_by[entry]

    def matching(
        self, event: ClusterEvent
    ) -> list[tuple[RejectedGroup, list[ClusterEventWithHint]]]:
        """Return the groups that an event may help, with the registrations by which it does: none
        of them is needed if there is none."""
        found: dict[RejectedGroup, list[ClusterEventWithHint]] = {}
        for plugin, hint in self._registered.get(event.kind, ()):
            for group in self._concerned(plugin, hint, event):
                if hint.anywhere or event.opens_for(group.key.namespace):
                    found.setdefault(group, []).append(hint)

        for group in self._without:
            if event.opens_for(group.key.namespace):
                found.setdefault(group, [])

        # A node on which a pod was not tried may take it, whatever rejected it elsewhere.
        if event.kind is EventKind.NODE_ADD:
            for group in self._groups.values():
                is_for_it = event.opens_for(group.key.namespace)
                if is_for_it and group not in found and not group.knows(event.node):
                    found[group] = []

        ordered = sorted(found.items(), key=lambda each: each[0].number)
        return [each for each in ordered if event.concerns(each[0].key.namespace)]

    def wakes(self, event: ClusterEvent, rejected: Signature, namespace: str) -> bool:
        """Tell whether the event may undo one of the rejections of a pod of that namespace,
        whatever pod it is about."""
        is_open = event.opens_for(namespace)
        if not rejected:
            return is_open

        for node, plugin in rejected:
            for hint in self.hints(plugin):
                here = hint.anywhere or (is_open and event.node in (None, node))
                if hint.kind is event.kind and here:
                    return True

        is_new = event.kind is EventKind.NODE_ADD
        return is_open and is_new and all(event.node != node for node, _plugin in rejected)

    def _register(self, plugin: str, hints: Iterable[ClusterEventWithHint]) -> None:
        for hint in hints:
            self._registered.setdefault(hint.kind, []).append((plugin, hint))

    def _concerned(
        self, plugin: str, hint: ClusterEventWithHint, event: ClusterEvent
    ) -> Iterator[RejectedGroup]:
        """Yield the groups that a plugin has rejected, and of whose pods the event may be."""
        is_anywhere = hint.anywhere or event.node is None
        if hint.scope is None or event.pod is None:
            node = _ALL if is_anywhere else event.node or _ALL
            yield from self._found_by.get(_RejectedBy(plugin, node), ())
            return

        for about in (objects.namespace(event.pod), _ALL):
            for group in self._found_by.get(_RejectedBy(plugin, about=about), ()):
                if is_anywhere or (event.node, plugin) in group.key.rejected:
                    yield group

    def _indexes(self, group: RejectedGroup) -> Iterator[dict[RejectedGroup, None]]:
        if not group.key.rejected:
            yield self._without

        for entry in _entries(group.key, self._scoped(group.key.rejected)):
            yield self._found_by.setdefault(entry, {})

    def _scoped(self, rejected: Signature) -> set[str]:
        """Return the plugins that say whose pods matter."""
        plugins = {plugin for _node, plugin in rejected}
        return {p for p in plugins if any(hint.scope is not None for hint in self.hints(p))}


def _entries(key: GroupKey, scoped: Iterable[str]) -> Iterator[_RejectedBy]:
    """Yield by what a group is found; `scoped` are those of its plugins that have a scope."""
    for node, plugin in key.rejected:
        yield _RejectedBy(plugin, node)

    for plugin in {plugin for _node, plugin in key.rejected}:
        yield _RejectedBy(plugin)

    for plugin in scoped:
        for namespace in (_ALL,) if key.scope is None else key.scope:
            yield _RejectedBy(plugin, about=namespace)
