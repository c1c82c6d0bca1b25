"""Snapshots of the scheduler's state: virtual nodes and the proxies on them.

A `VirtualNode` is what the agent knows of a target and its node object; a `VirtualNodeInfo` adds
what the cache counts. A `Snapshot` holds all of them, sorted by name. It is made without copying
pods, so it is good for one cycle, that is, until the next `await`; the VirtualNodeInfos in it never
change and may be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from vnode.api import class_names, node_labels, objects, resources
from vnode.api.class_names import ClassNames
from vnode.api.cluster_scores import NO_SCORES, TargetScores
from vnode.api.keys import NODE_FAILURES
from vnode.api.node_pools import NodePool
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import Rows
from vnode.planning.workload_counts import Workloads
from vnode.scheduling.claim_users import ClaimUsers
from vnode.scheduling.pod_counts import PodCounts
from vnode.scheduling.quotas import Quotas


@dataclass(frozen=True, slots=True)
class VirtualNode:
    """A target as its source sees it."""

    name: str
    """The name of the Node."""
    node: Object
    """The Node object; all its labels, taints and `spec.unschedulable` are read."""
    target: tuple[str, str]
    """Namespace ("" for a ClusterTarget) and name of the Target."""
    target_namespace: str | None = None
    """The only namespace whose pods it takes; None for a ClusterTarget."""
    healthy: bool = True
    """The target answers."""
    unhealthy_reason: str = ""
    """Why it is not healthy, for users: `unreachable for 3m`."""
    connecting: bool = False
    """It is not known yet whether the target answers."""
    allocatable: Resources | None = None
    """What the target offers in all; None as long as it is not known."""
    cluster_uid: str | None = None
    """Which cluster it is; "" if it has no such id, None as long as it is not known."""
    classes: ClassNames = class_names.UNKNOWN
    """The RuntimeClasses and PriorityClasses that it has."""
    priority_classes: Mapping[str, str] = field(default_factory=dict)
    """Which PriorityClasses stand for the source's, as the Target says."""
    unlisted: frozenset[str] = frozenset()
    """Resources that its nodes have without listing them, as the Target says."""
    pools: tuple[NodePool, ...] = ()
    """Node pools that may grow, as the Target says."""
    scores: TargetScores = NO_SCORES
    """What others say of it, of what a plugin uses (`Handle.use_score`)."""


@dataclass(frozen=True, slots=True)
class VirtualNodeInfo:
    """A virtual node at one moment."""

    virtual: VirtualNode
    requested: Resources
    """Sum of the requests of the proxies placed here (`pods`: their number)."""
    free: Resources | None
    """What the target reported free on all nodes together, less what was promised since then."""
    largest: Resources | None
    """For each resource, the most that any single node of the target has free."""
    rows: Rows | None = None
    """What its nodes have free, as last reported; None if it reports none."""
    name: str = field(init=False)
    labels: Mapping[str, str] = field(init=False)
    taints: tuple[Object, ...] = field(init=False)
    """Those of the Node, but for what Kubernetes says of its health: `healthy` says that, and at
    once."""
    unschedulable: bool = field(init=False)
    """Cordoned."""

    def __post_init__(self) -> None:
        spec = objects.spec(self.virtual.node)
        object.__setattr__(self, "name", self.virtual.name)
        object.__setattr__(self, "labels", node_labels.of_node(self.virtual.node))
        taints = spec.get("taints") or ()
        others = tuple(taint for taint in taints if taint.get("key") not in NODE_FAILURES)
        object.__setattr__(self, "taints", others)
        object.__setattr__(self, "unschedulable", bool(spec.get("unschedulable")))

    def known_free(self) -> Resources | None:
        """Return what the node has free, as far as it is known; None if nothing is."""
        if self.free is not None:
            return self.free

        if self.virtual.allocatable is None:
            return None

        return resources.subtract(self.virtual.allocatable, self.requested)

    def lists(self, resource: str) -> bool:
        """Tell whether the target says that nodes have a resource, or would have if they came."""
        if resource in (self.known_free() or ()):
            return True

        return any(resource in pool.allocatable for pool in self.virtual.pools)


class Snapshot:
    """All virtual nodes, by name, the counts of proxies on them, quotas, and users of claims."""

    __slots__ = ("claim_users", "nodes", "pod_counts", "quotas", "workloads")

    def __init__(
        self,
        nodes: tuple[VirtualNodeInfo, ...],
        pod_counts: PodCounts,
        workloads: Workloads,
        quotas: Quotas | None = None,
        claim_users: ClaimUsers | None = None,
    ) -> None:
        self.nodes = nodes
        self.pod_counts = pod_counts
        self.workloads = workloads
        self.quotas = quotas or Quotas()
        self.claim_users = claim_users or ClaimUsers()

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[VirtualNodeInfo]:
        return iter(self.nodes)

    def get(self, name: str) -> VirtualNodeInfo | None:
        """Return the node of that name, if there is one."""
        return next((node for node in self.nodes if node.name == name), None)

    def target_name(self, node: str) -> str:
        """Return the name of a node's target, for messages; that of the node if it is not here."""
        info = self.get(node)
        return info.virtual.target[1] if info else node
