"""Holds rejected pods until an event that may help them.

An event wakes a pod if a plugin that rejected it on that node registered for its kind; a plugin may
register for events anywhere. Pods of a namespace whose rejections are equal form a group, for which
an event is matched once (`rejected_groups`). Of events about a pod, a plugin may say whom these
concern: by namespace, and then pod by pod, by what it has read of each when that began to wait.
Comparing them is paid by whoever places a pod, and an attempt by those who wait: so little is
compared for each namespace, and beyond that its pods are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from vnode.api import objects
from vnode.api.objects import Object
from vnode.scheduling.events import ClusterEvent, ClusterEventWithHint, EventReading, ReadPod
from vnode.scheduling.rejected_groups import (
    GroupKey,
    RejectedGroup,
    RejectedGroups,
    RejectedPod,
    Scope,
    Signature,
)

Rejections: TypeAlias = Mapping[str, frozenset[str]]
"""Node name -> the plugins that rejected it."""

MOST_COMPARED: Final = 500
"""Comparisons for the pods of a namespace that wait, at one event; beyond, they are tried."""
COMPARED_IN_ALL: Final = 5_000
"""Likewise, for those of all namespaces: some 5 ms."""

_EACH: Final = 4  # comparisons as which it counts to look at a pod at all
_MOST_NAMED: Final = 16  # namespaces by which a waiting pod is found; of more, by all


def signature(rejections: Rejections) -> Signature:
    """Return the rejections as pairs of node and plugin."""
    return frozenset((node, plugin) for node, plugins in rejections.items() for plugin in plugins)


class UnschedulablePods:
    """The unschedulable pods, by what rejected them."""

    def __init__(self, registrations: Mapping[str, frozenset[ClusterEventWithHint]]) -> None:
        """Take plugin -> events that may undo its rejections; for others, all events may."""
        self._groups = RejectedGroups(registrations)
        self._group_of: dict[str, RejectedGroup] = {}  # by UID

    def add(self, pod: Object, rejected: Signature) -> None:
        """Add a pod with its rejections."""
        uid = objects.uid(pod)
        hints = [
            hint
            for plugin in {plugin for _, plugin in rejected}
            for hint in self._groups.hints(plugin)
        ]
        readings = {read: read(pod) for read in {hint.read for hint in hints} if read is not None}
        key = GroupKey(objects.namespace(pod), rejected, _scope(pod, hints))
        self._group_of[uid] = self._groups.put(key, uid, RejectedPod(pod, readings))

    def remove(self, uid: str) -> None:
        """Remove a pod, which was added."""
        self._groups.remove(self._group_of.pop(uid), uid)

    def woken_by(self, event: ClusterEvent) -> list[str]:
        """Return the UIDs of pods that the event may help. They are not removed."""
        woken, asked = list[str](), _AskedPods(event)
        for group, hints in self._groups.matching(event):
            reads = _reads(hints) if event.pod is not None else None
            if reads is None:
                woken += group.pods
            else:
                namespace = group.key.namespace
                for uid, each in group.pods.items():
                    if asked.may_help(namespace, each, reads):
                        woken.append(uid)

        return woken

    def wakes(self, event: ClusterEvent, rejected: Signature, namespace: str) -> bool:
        """Tell whether the event may undo one of the rejections of a pod of that namespace,
        whatever pod it is about."""
        return self._groups.wakes(event, rejected, namespace)


class _AskedPods:
    """Compares pods that wait with the one that an event is about, as long as that is cheap."""

    def __init__(self, event: ClusterEvent) -> None:
        self._about = event.pod
        self._read: dict[ReadPod, EventReading] = {}  # of that one
        self._compared: Counter[str] = Counter()  # by the namespace of those that wait
        self._total = 0

    def may_help(self, namespace: str, waiting: RejectedPod, reads: Iterable[ReadPod]) -> bool:
        """Tell whether the event may help a pod of a namespace, by what these have read of both."""
        for read in reads:
            own = waiting.readings[read]
            self._compared[namespace] += own.cost + _EACH
            if self._compared[namespace] > MOST_COMPARED or self._total > COMPARED_IN_ALL:
                return True

            self._total += own.cost + _EACH
            if own.is_helped_by(self._other(read)):
                return True

        return False

    def _other(self, read: ReadPod) -> EventReading:
        if read not in self._read:
            assert self._about is not None
            self._read[read] = read(self._about)

        return self._read[read]


def _reads(hints: Iterable[ClusterEventWithHint]) -> list[ReadPod] | None:
    """Return by what pods are compared; None if the event may help them, whoever it is about."""
    found = dict.fromkeys(hint.read for hint in hints)
    reads = [read for read in found if read is not None]
    return reads if reads and len(reads) == len(found) else None


def _scope(pod: Object, hints: Iterable[ClusterEventWithHint]) -> Scope:
    """Return the namespaces that any of the registrations names which have a scope."""
    named = set[str]()
    for scope in {hint.scope for hint in hints if hint.scope is not None}:
        found = scope(pod)
        if found is None or len(named | found) > _MOST_NAMED:
            return None

        named |= found

    return frozenset(named)
