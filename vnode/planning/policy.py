"""A placement policy as the scheduler uses it: decoded, checked and compiled.

`vnode/placement` reads the objects PlacementPolicy and ClusterPlacementPolicy; this is what plugins
and planners see of them. Policies are values: a change makes a new one.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.properties import PropertyRequirement
from vnode.api.selectors import Selector
from vnode.planning.cluster_decision import ClusterDecision, Publishing
from vnode.planning.failover import DEFAULT_GRACE, Failover, Purge
from vnode.planning.move_policy import Drain, Failback, RescheduleTrigger
from vnode.planning.policy_node import PolicyNode, names_of
from vnode.planning.seats import Share

_EVERY_NODE: Final = Selector()
_FAILBACK: Final = Failback()


class Mode(enum.Enum):
    """How the pods of a workload are divided among the clusters of its policy."""

    SPREAD = "Spread"
    """By weight within each tier."""
    FILL = "Fill"
    """One cluster after the other: by tier, in a tier in the order of the list, in an entry by
    name."""
    SINGLE = "Single"
    """All in one cluster, which the scheduling of the first pod chooses."""
    ANY = "Any"
    """No plan: ordinary scoring among the clusters of the policy."""


@dataclass(frozen=True, slots=True)
class Clusters:
    """Which virtual nodes: those that match the selector, have the properties, and are named (if
    any is) and not excluded."""

    selector: Selector = _EVERY_NODE
    names: frozenset[str] = frozenset()
    """Names of virtual nodes, or of their Targets or ClusterTargets; empty: all."""
    exclude: frozenset[str] = frozenset()
    """Likewise; they win over `names`."""
    properties: frozenset[PropertyRequirement] = frozenset()

    def include(self, node: PolicyNode) -> bool:
        """Tell whether it is one of them."""
        names = names_of(node)
        if not self.exclude.isdisjoint(names) or (self.names and self.names.isdisjoint(names)):
            return False

        return self.selector.matches(node.labels) and all(
            required.matches(node.labels) for required in self.properties
        )


@dataclass(frozen=True, slots=True)
class PlacementTarget:
    """One entry of `targets`: what each cluster that it includes may have."""

    clusters: Clusters
    weight: int | None = None
    """None: by free capacity, if no entry has one; else 1."""
    tier: int = 0
    """`priority`; higher ones are filled first."""
    minimum: int = 0
    maximum: int | None = None


@dataclass(frozen=True, slots=True)
class Overflow:
    """When a pod that its planned cluster cannot take may go to another one."""

    after: float = 60.0
    """Seconds for which the pod has been unschedulable."""
    max_candidates: int = 3
    """In so many clusters the pod may be waiting at once."""
    keep_unschedulable: bool = True
    """Whether candidates in better clusters stay when the pod has found a place."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Policy:
    """One policy, compiled."""

    name: str
    """For messages, as kubectl writes it: `placementpolicy/web` or `clusterplacementpolicy/web`."""
    namespace: str
    """"" for a ClusterPlacementPolicy."""
    selector: Selector | None
    """Labels of the pods that it is for; None: only pods that name it by label."""
    mode: Mode = Mode.SPREAD
    priority: int = 0
    """Of several policies for a pod, the one with the highest counts."""
    group_by: str = ""
    """Key of the label whose value makes pods one workload; "": their owner does."""
    namespaces: frozenset[str] = frozenset()
    """Of a ClusterPlacementPolicy: the namespaces whose pods it is for; empty: all of them."""
    joinable: bool = True
    """Whether pods that it does not select may name it by label."""
    clusters: Clusters = Clusters()
    decision: ClusterDecision | None = None
    """Of the clusters, only those that it is for; None: all of them."""
    targets: tuple[PlacementTarget, ...] = ()
    """Empty: all of `clusters`, with equal rights."""
    overflow: Overflow = Overflow()
    failback: Failback = _FAILBACK
    drains: tuple[Drain, ...] = ()
    """Those that have not ended."""
    reschedule: frozenset[RescheduleTrigger] = frozenset()
    failover: Failover | None = None
    """None: as without a policy."""
    publishing: Publishing | None = None
    """None: what is decided by it is not published."""
    is_default: bool = False
    """Whether it holds where there is no other, without an object."""
    uid: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """The key of the object that it was made from: NAMESPACE/NAME, or NAME.

        One that is for want of another has a key that no object has.
        """
        if self.is_default:
            return self.name

        return objects.join_key(self.namespace, self.name.partition("/")[2])

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether it is for pods with these labels that name no policy."""
        if self.selector is None or (self.namespaces and namespace not in self.namespaces):
            return False

        return self.selector.matches(labels)

    def may_be_named(self, namespace: str) -> bool:
        """Tell whether pods of that namespace may name it by label."""
        return self.joinable and (not self.namespaces or namespace in self.namespaces)

    @property
    def replacement_grace(self) -> float:
        """Seconds for which a pod that is moved may wait for its replacement; 0: it does not."""
        if self.failover is None:
            return DEFAULT_GRACE

        return 0.0 if self.failover.purge is Purge.IMMEDIATE else self.failover.grace

    @property
    def by_capacity(self) -> bool:
        """Whether no entry of a policy that spreads has a weight, so that free capacity counts."""
        return self.mode is Mode.SPREAD and all(target.weight is None for target in self.targets)

    @property
    def has_plan(self) -> bool:
        """Whether it says how many pods each cluster is to have."""
        return self.mode is not Mode.ANY

    @property
    def is_divided(self) -> bool:
        """Whether pods of a workload are divided among clusters by a plan."""
        return self.has_plan and not self.is_together

    @property
    def is_together(self) -> bool:
        """Whether all pods of a workload are kept in one cluster, and so moved all or none."""
        return self.mode is Mode.SINGLE

    def shares(
        self, nodes: Iterable[PolicyNode], capacity: Mapping[str, int] | None = None
    ) -> tuple[Share, ...]:
        """Return what a workload may have in each cluster of the policy, by the nodes that exist.

        The first entry of `targets` that includes a node counts. `capacity` has the weight of each
        node for a policy whose entries have none.
        """
        found = [
            (node, index, target, place)
            for node in sorted(nodes, key=lambda node: node.name)
            for index, target in (self._target(node),)
            for place in (0 if self.decision is None else self.decision.position(node),)
            if target is not None and place is not None
        ]
        turns = [_turn(node, index, target, place) for node, index, target, place in found]
        last_first = sorted(set(turns), reverse=True)
        tiers = {turn: tier for tier, turn in enumerate(last_first)}
        fills = self.mode is Mode.FILL
        shares = []
        for (node, _, target, _), turn in zip(found, turns, strict=True):
            tier = tiers[turn] if fills else target.tier * (len(self.targets) + 1)
            weight = 1 if target.weight is None else target.weight
            share = Share(node.name, weight, tier, target.minimum, target.maximum)
            if capacity is not None and self.by_capacity:
                share = by_capacity(share, capacity.get(node.name, 0))

            cap = self.drained_to(node) if self.drains else None
            shares.append(share if cap is None else share.capped(cap))

        return tuple(shares)

    def rejects(self, node: PolicyNode) -> str:
        """Return why a node is none of the policy's, "" if that is for its fields to say."""
        return self.decision.rejects(node) if self.decision is not None else ""

    def drained_to(self, node: PolicyNode) -> int | None:
        """Return how many pods of each workload a drain leaves the node; None without a drain."""
        names = names_of(node)
        return min((d.maximum for d in self.drains if d.cluster in names), default=None)

    def _target(self, node: PolicyNode) -> tuple[int, PlacementTarget | None]:
        """Return the first entry that includes the node, with its index."""
        if not self.clusters.include(node):
            return 0, None

        if not self.targets:
            return 0, PlacementTarget(Clusters())

        including = ((n, t) for n, t in enumerate(self.targets) if t.clusters.include(node))
        return next(including, (0, None))


def _turn(
    node: PolicyNode, index: int, target: PlacementTarget, place: int
) -> tuple[int, bool, int, int, str]:
    """Return what sorts clusters as the mode Fill fills them.

    In one entry that is the order of a decision, if there is one, then that of the names: all who
    plan have to see the same order at any moment, which what is free just now does not give. Those
    with a weight share what is left of their priority.
    """
    if target.weight is not None:
        return -target.tier, True, 0, 0, ""

    return -target.tier, False, index, place, node.name


def by_capacity(share: Share, capacity: int) -> Share:
    """Return the share with the free capacity of its cluster as weight.

    One without any comes just after the others of its tier: it may get room, as by an autoscaler,
    so that it is still to be asked when no other can take a pod.
    """
    if capacity:
        return dataclasses.replace(share, weight=capacity)

    return dataclasses.replace(share, weight=1, tier=share.tier - 1)


class Policies(Protocol):
    """The policies that are in force."""

    def __bool__(self) -> bool:
        """Return whether there are any."""

    def of(self, pod: Object) -> Policy | None:
        """Return the policy of a pod: one of its namespace before a cluster-wide one, then the
        highest priority, then the first by name; None if there is none for it."""


class WatchedPolicies(Policies, Protocol):
    """The policies that are in force, and news of them."""

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` after each change, with the namespace that it concerns, "" for all."""


class GroupingPolicies(WatchedPolicies, Protocol):
    """The policies that are in force, and by what they divide pods into workloads."""

    def groupings(self, namespace: str) -> frozenset[str]:
        """Return what policies for pods of a namespace group by, "" for their owners."""


class _NoPolicies:
    """Policies where there are none."""

    def __bool__(self) -> bool:
        return False

    def of(self, pod: Object) -> Policy | None:
        """Return None."""
        return None


NO_POLICIES: Final[Policies] = _NoPolicies()
