"""Events that may make a rejected pod schedulable.

Watchers of targets, nodes and pods turn a change into a ClusterEvent and give it to the queue;
plugins have registered which kinds can undo their rejections. An event names its node, so that it
wakes no pod that this node never rejected, and the pod that it is about, so that plugins can tell
whom that one concerns.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from vnode.api import objects
from vnode.api.objects import Object


class EventKind(enum.Enum):
    """What kind of change it is."""

    NODE_ADD = "node added"
    NODE_LABELS = "node labels changed"
    NODE_TAINTS = "node taints changed, or it was uncordoned"
    NODE_ALLOCATABLE = "allocatable of a target changed"
    TARGET_FREE = "a target has more free than before"
    TARGET_QUOTA = "a quota of a target has room, or a limit there changed"
    TARGET_SCORES = "a target has other scores"
    TARGET_HEALTH = "a target can be reached again"
    TARGET_LOST = "a target cannot be reached any more, or has gone"
    TARGET_CHANGED = "a Target, its credentials or its namespaces changed"
    NAMESPACE_LABEL = "a namespace got the label that lets its pods leave the cluster"
    OVERRIDES = "an override policy changed"
    POD_ADD = "a proxy was placed on a node"
    POD_DELETE = "a proxy left its node, finished there, or began to end"
    POD_FORGOTTEN = "a proxy is no longer on its way to a node"
    PLAN_FREED = "a proxy does not go where it was planned, or is the first of its workload"
    POLICY_CHANGED = "a placement policy was added, changed or deleted"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """One event; without a node it is about all nodes, without a namespace about all pods."""

    kind: EventKind
    node: str | None = None
    namespace: str | None = None
    pod: Object | None = field(default=None, compare=False)
    """The pod that came or went, if it was one; events about several are equal."""
    home: str | None = None
    """The only namespace whose pods may go to the node; None if that is not so, or not known."""

    def concerns(self, namespace: str) -> bool:
        """Tell whether it may help pods of that namespace."""
        return self.namespace is None or self.namespace == namespace

    def opens_for(self, namespace: str) -> bool:
        """Tell whether pods of that namespace may go to its node; else only what they meet in
        places that are larger, such as a zone, may have changed for them."""
        return self.home is None or self.home == namespace


class EventReading(ABC):
    """What a plugin reads of a pod to tell whether others may help it.

    It is read of a rejected pod once, and kept for as long as that waits; of a pod that comes or
    goes once for all that wait.
    """

    __slots__ = ()

    cost: int
    """How many comparisons it takes."""

    @abstractmethod
    def is_helped_by(self, other: Any) -> bool:
        """Tell whether it may help the pod that the other, which was read alike, comes or goes."""


ReadPod: TypeAlias = Callable[[Object], EventReading]


@dataclass(frozen=True, slots=True)
class ClusterEventWithHint:
    """A kind of event for which a plugin wants its rejected pods tried again.

    By default only an event of the very node that was rejected counts; `anywhere` is for plugins
    whose verdict on one node depends on others, as topology spread does.
    """

    kind: EventKind
    anywhere: bool = False
    scope: Callable[[Object], frozenset[str] | None] | None = None
    """Returns the namespaces whose pods can help a rejected pod by such an event, None for all;
    without it, all can."""
    read: ReadPod | None = None
    """Reads of pods whether such an event about one may help another, which was rejected; without
    it, it may."""


def anywhere(*found: EventKind) -> list[ClusterEventWithHint]:
    """Return registrations for such events on whatever node."""
    return [ClusterEventWithHint(kind, anywhere=True) for kind in found]


def own_namespace(pod: Object) -> frozenset[str]:
    """Return the scope of a pod that only pods of its namespace can help."""
    return frozenset((objects.namespace(pod),))


def of_pods(
    scope: Callable[[Object], frozenset[str] | None], read: ReadPod
) -> list[ClusterEventWithHint]:
    """Return registrations for pods that come or go on whatever node, if that may help."""
    kinds = (EventKind.POD_ADD, EventKind.POD_DELETE, EventKind.POD_FORGOTTEN)
    return [ClusterEventWithHint(kind, anywhere=True, scope=scope, read=read) for kind in kinds]


EVERYTHING: Final = frozenset(anywhere(*EventKind))
