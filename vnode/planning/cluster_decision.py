"""The clusters that somebody else has decided for, as a placement policy sees them. Pure.

`vnode.placement.decisions` reads the decisions of SIG Multicluster and of Open Cluster Management;
scheduling sees both as this: clusters, best first. A decision is a value: a change makes a new one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from vnode.api import keys, objects
from vnode.planning.policy_node import PolicyNode

AWAITED: Final = "AwaitingDecision"
"""The reason of a decision that has not been read yet."""


class DecisionKind(enum.Enum):
    """What a policy names to have clusters decided."""

    PLACEMENT_DECISION = "PlacementDecision"
    """SIG Multicluster's, by the key that its slices have in common."""
    PLACEMENT = "Placement"
    """Open Cluster Management's, whose controller writes decisions for it."""


@dataclass(frozen=True, slots=True)
class DecisionReference:
    """The place of a decision."""

    kind: DecisionKind
    namespace: str
    name: str

    def __str__(self) -> str:
        key = objects.join_key(self.namespace, self.name)
        return f"{self.kind.value.lower()}/{key}"


@dataclass(frozen=True, slots=True)
class DecidedCluster:
    """One cluster of a decision."""

    name: str
    """What the decision calls it: the name of a ManagedCluster, or `namespace/name` of a
    ClusterProfile."""
    nodes: frozenset[str] | None = None
    """The virtual nodes of the Targets that name its profile; None: they are found by `name`."""


@dataclass(frozen=True, slots=True)
class ClusterDecision:
    """What was decided, best first."""

    reference: DecisionReference
    clusters: tuple[DecidedCluster, ...] = ()
    problem: str = ""
    """Why there is no decision, and what to do; "": there is one, which may be empty."""
    reason: str = ""
    """The problem in one word."""
    is_known: bool = True
    """Whether what is decided is known, if only that it is nothing."""
    oddities: tuple[str, ...] = ()
    """What of it cannot be used, and why."""
    _by_node: Mapping[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _by_name: Mapping[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_node, by_name = dict[str, int](), dict[str, int]()
        for index, cluster in enumerate(self.clusters):
            if cluster.nodes is None:
                by_name.setdefault(cluster.name, index)
            else:
                for node in cluster.nodes:
                    by_node.setdefault(node, index)

        object.__setattr__(self, "_by_node", by_node)
        object.__setattr__(self, "_by_name", by_name)

    def position(self, node: PolicyNode) -> int | None:
        """Return the node's place in the decision, from 0; None if it was not decided for."""
        return self._by_name.get(_cluster_name(node), self._by_node.get(node.name))

    def without_nodes(self, nodes: Iterable[PolicyNode]) -> list[str]:
        """Return the names of the clusters for which there is no virtual node, in their order."""
        found = {self.position(node) for node in nodes}
        return [each.name for index, each in enumerate(self.clusters) if index not in found]

    def rejects(self, node: PolicyNode) -> str:
        """Return why pods cannot go to a node, "" if the decision is for it."""
        if self.position(node) is not None:
            return ""

        if self.problem:
            return self.problem

        return f"{self.reference} selects {'other' if self.clusters else 'no'} clusters"


@dataclass(frozen=True, slots=True)
class Publishing:
    """Where a policy publishes what is decided by it."""

    namespace: str
    name: str
    """The key that the slices have in common."""


def _cluster_name(node: PolicyNode) -> str:
    """Return what Open Cluster Management calls a cluster: by its label, else by its Target."""
    labels = node.labels
    return (
        labels.get(keys.OCM_CLUSTER_NAME)
        or labels.get(keys.CLUSTER_TARGET_NAME)
        or labels.get(keys.TARGET_NAME)
        or ""
    )
