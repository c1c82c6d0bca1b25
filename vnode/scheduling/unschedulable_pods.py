"""Holds rejected pods until an event that may help them.

Pods whose rejections are equal form a group: an event is matched once for all of them, however many
there are. An event wakes a pod if a plugin that rejected it on that node registered for its kind;
a plugin may register for events anywhere. Of events about a pod, it may say whom these concern: by
namespace, which is looked up for each waiting pod once, and then pod by pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling.events import EVERYTHING, ClusterEvent, ClusterEventWithHint, EventKind

Rejections: TypeAlias = Mapping[str, frozenset[str]]
"""Node name -> the plugins that rejected it."""

Signature: TypeAlias = frozenset[tuple[str, str]]
"""Rejections as pairs of node and plugin; equal rejections have the same."""

_Scope: TypeAlias = frozenset[str] | None
"""The namespaces whose pods concern a waiting pod; None: all."""

MOST_ASKED: Final = 100
"""Waiting pods for which plugins are asked about one event; beyond, an attempt is as cheap."""


def signature(rejections: Rejections) -> Signature:
    """Return the rejections as pairs of node and plugin."""
    return frozenset((node, plugin) for node, plugins in rejections.items() for plugin in plugins)


class UnschedulablePods:
    """The unschedulable pods, by what rejected them."""

    def __init__(self, registrations: Mapping[str, frozenset[ClusterEventWithHint]]) -> None:
        """Take plugin -> events that may undo its rejections; for others, all events may."""
        self._registrations = registrations
        # By rejections, then by scope: UID -> pod in the order in which they were added. No empty
        # groups.
        self._groups: dict[Signature, dict[_Scope, dict[str, Object]]] = {}
        self._scopes: dict[str, _Scope] = {}  # by UID

    def add(self, pod: Object, rejected: Signature) -> None:
        """Add a pod with its rejections."""
        uid, scope = objects.uid(pod), self._scope(pod, rejected)
        self._scopes[uid] = scope
        self._groups.setdefault(rejected, {}).setdefault(scope, {})[uid] = pod

    def remove(self, uid: str, rejected: Signature) -> None:
        """Remove a pod, which was added with these rejections."""
        scopes, scope = self._groups[rejected], self._scopes.pop(uid)
        del scopes[scope][uid]
        if not scopes[scope]:
            del scopes[scope]

        if not scopes:
            del self._groups[rejected]

    def woken_by(self, event: ClusterEvent) -> list[str]:
        """Return the UIDs of pods that the event may help. They are not removed."""
        woken, asked = list[str](), 0
        for rejected, scopes in self._groups.items():
            hints = self._hints(event, rejected)
            if hints is None:
                continue

            for scope, pods in scopes.items():
                if not _is_in_scope(event, hints, scope):
                    continue

                for uid, pod in pods.items():
                    asked += 1
                    if asked > MOST_ASKED or _may_help(event, hints, pod):
                        woken.append(uid)

        return woken

    def wakes(self, event: ClusterEvent, rejected: Signature) -> bool:
        """Tell whether the event may undo one of the rejections, whatever pod it is about."""
        return self._hints(event, rejected) is not None

    def _hints(
        self, event: ClusterEvent, rejected: Signature
    ) -> frozenset[ClusterEventWithHint] | None:
        """Return by which registrations an event wakes pods with these rejections: none of them
        needed if it is empty; None if it does not."""
        found = frozenset(self._matching(event, rejected))
        if found or not rejected:
            return found

        # A node on which the pod was not tried may take it, whatever rejected it elsewhere.
        is_new = event.kind is EventKind.NODE_ADD
        return found if is_new and event.node not in {node for node, _ in rejected} else None

    def _matching(self, event: ClusterEvent, rejected: Signature) -> Iterator[ClusterEventWithHint]:
        for node, plugin in rejected:
            for hint in self._registrations.get(plugin, EVERYTHING):
                here = hint.anywhere or event.node is None or event.node == node
                if hint.kind is event.kind and here:
                    yield hint

    def _scope(self, pod: Object, rejected: Signature) -> _Scope:
        """Return the namespaces that any of the registrations names which have a scope."""
        named = set[str]()
        scopes = {
            hint.scope
            for plugin in {plugin for _, plugin in rejected}
            for hint in self._registrations.get(plugin, EVERYTHING)
            if hint.scope is not None
        }
        for scope in scopes:
            found = scope(pod)
            if found is None:
                return None

            named |= found

        return frozenset(named)


def _is_in_scope(
    event: ClusterEvent, hints: frozenset[ClusterEventWithHint], scope: _Scope
) -> bool:
    if event.pod is None or scope is None or not hints or any(h.scope is None for h in hints):
        return True

    return objects.namespace(event.pod) in scope


def _may_help(event: ClusterEvent, hints: frozenset[ClusterEventWithHint], pod: Object) -> bool:
    about = event.pod
    if about is None or not hints:
        return True

    return any(hint.helps is None or hint.helps(pod, about) for hint in hints)
