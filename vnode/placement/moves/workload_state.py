"""Puts together what moves of a workload depend on, from the scheduler's own counts. Pure.

Where there is room, the scheduler's filters say, by a pod of the workload as it is stored: what
informers keep of a bound pod is not enough for them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import keys, objects
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.planning import weighing
from vnode.planning.moving import MoveReason, Replica
from vnode.planning.policy import Policy
from vnode.planning.seats import Share
from vnode.planning.weighing import Weighting
from vnode.planning.workload import Workload
from vnode.planning.workload_pod import WorkloadPod
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo

UNBOUNDED: Final = 1000
"""Pods that a cluster has room for if it does not say what it has."""

_ASKED_FOR: Final = frozenset({MoveReason.DRAIN, MoveReason.REBALANCE})


@dataclass(frozen=True, slots=True)
class PolicyClusters:
    """The clusters of a workload's policy."""

    included: frozenset[str]
    shares: tuple[Share, ...]
    """Of those that can take its pods, given room."""
    caps: Mapping[str, int]
    """Those that are drained, and what may stay there."""
    weighting: Weighting | None = None
    """What they weigh by free capacity, if the policy goes by that."""


def replica_of(
    member: WorkloadPod, reason: MoveReason | None, now: datetime, patience: float
) -> Replica:
    """Return what moves look at of a pod, which waits if it is unschedulable for so long."""
    pod = member.pod
    created = objects.parse_timestamp(str(objects.metadata(pod).get("creationTimestamp") or ""))
    return Replica(
        member.uid,
        member.node or member.aim,
        bound=bool(member.node),
        ready=is_ready(pod),
        age=(now - created).total_seconds() if created else 0.0,
        movable=is_movable(pod, reason),
        overflowed=has_overflowed(pod),
        waiting=member.since is not None and now.timestamp() - member.since >= patience - TICK,
        placeholders=member.placeholders,
        owner=objects.controller_uid(pod),
        revision=member.revision,
    )


def template_of(pod: Object) -> Object:
    """Return the pod as one that is not known yet.

    Filters take what a known pod has already, such as its part of a quota, for room for it.
    """
    return {**pod, "metadata": {**objects.metadata(pod), "uid": ""}}


def has_overflowed(pod: Object) -> bool:
    """Tell whether the pod is bound elsewhere than it was planned."""
    return keys.OVERFLOWED_FROM in objects.annotations(pod)


def is_ready(pod: Object) -> bool:
    """Tell whether the pod's condition Ready is true."""
    return (objects.condition(pod, "Ready") or {}).get("status") == "True"


def is_movable(pod: Object, reason: MoveReason | None) -> bool:
    """Tell whether the pod's owner replaces it.

    The owner of a pod that came from another cluster is there. The pod of a Job would begin its
    work anew: it is moved only if somebody asks for it.
    """
    kind = (objects.controller_reference(pod) or {}).get("kind")
    if kind in (None, "DaemonSet", "PodChaperon"):
        return False

    return kind != "Job" or reason in _ASKED_FOR


def clusters_of(
    policy: Policy,
    workload: Workload,
    snapshot: Snapshot,
    able: Collection[str],
    requests: Resources,
) -> PolicyClusters:
    """Return the clusters of the policy, with the weights that they had when a pod was planned.

    If none was since its pods are counted, they are weighed now, and are to be kept.
    """
    weighting = None
    if policy.by_capacity:
        nodes = snapshot.nodes
        weighting = workload.weighting or weighing.weigh(
            policy.shares(nodes), nodes, requests, workload.bound
        )

    shares = policy.shares(snapshot.nodes, weighting.weights if weighting else None)
    caps = {node.name: policy.drained_to(node) for node in snapshot.nodes} if policy.drains else {}
    return PolicyClusters(
        frozenset(share.node for share in shares),
        tuple(share for share in shares if share.node in able),
        {node: cap for node, cap in caps.items() if cap is not None},
        weighting,
    )


def room(
    workload: Workload,
    snapshot: Snapshot,
    nodes: Collection[str],
    requests: Resources,
    going: Mapping[str, int],
    least: int = 0,
) -> dict[str, int]:
    """Return how many more pods of the workload could start on these nodes, which filters accept.

    At least that many, but none where another one waits. `going` has the pods that are on their way
    there, or came a moment ago: what reports say is free may not be without these.
    """
    found = {}
    for node in snapshot.nodes:
        if node.name in nodes and math.isinf(workload.waiting_since(node.name)):
            found[node.name] = max(least, fits(node, requests) - going.get(node.name, 0))

    return {node: count for node, count in found.items() if count > 0}


def fits(node: VirtualNodeInfo, requests: Resources) -> int:
    """Return how many such pods the node has room for, by all that is known of it."""
    free = node.known_free()
    if free is None:
        return UNBOUNDED

    counts = (free[name] // amount for name, amount in requests.items() if amount and name in free)
    return max(0, min(counts, default=UNBOUNDED))
