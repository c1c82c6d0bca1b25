"""What policies and decisions look at of a virtual node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from vnode.api import keys, node_labels, objects
from vnode.api.objects import Object


class PolicyNode(Protocol):
    """What a policy looks at; `VirtualNodeInfo` has it."""

    @property
    def name(self) -> str:
        """The name of the Node."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the Node."""


def names_of(node: PolicyNode) -> tuple[str, ...]:
    """Return what a policy may call a virtual node: its own name, and that of its Target."""
    labels = node.labels
    target = labels.get(keys.CLUSTER_TARGET_NAME) or labels.get(keys.TARGET_NAME)
    return (node.name, target) if target else (node.name,)


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A virtual node, as far as plans look at it."""

    name: str
    labels: Mapping[str, str]
    takes_pods: bool = True
    """It is ready and not cordoned, so that more pods may be planned for it."""


def planned_node(node: Object) -> PlannedNode:
    """Return what plans look at of a Node."""
    ready = (objects.condition(node, "Ready") or {}).get("status", "True") == "True"
    takes_pods = ready and not objects.spec(node).get("unschedulable")
    return PlannedNode(objects.name(node), node_labels.of_node(node), takes_pods)


def covering(nodes: Iterable[PlannedNode], namespace: str) -> list[PlannedNode]:
    """Return the virtual nodes that are for pods of that namespace."""
    return [n for n in nodes if n.labels.get(keys.TARGET_NAMESPACE) in (None, "", namespace)]
