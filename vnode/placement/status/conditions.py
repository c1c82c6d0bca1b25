"""Builds the conditions of a placement policy. No I/O.

Accepted says whether it is in force, Decided whether the decision that it follows can be used as it
is, Published whether its own is published. A policy has the last two only where it asks for that,
and ClustersFound only while clusters do not exist any more that it names.
ClustersReady is there while clusters are lost, of a policy that says what becomes of their pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from vnode.api import enumeration, objects, status_conditions
from vnode.api.errors import MESSAGE_LIMIT
from vnode.api.objects import Object, Objects
from vnode.placement.decisions import published
from vnode.placement.decisions.published import PublishingState
from vnode.placement.policies.judging import ACCEPTED, UNKNOWN_CLUSTER, PolicyVerdict
from vnode.planning.cluster_decision import AWAITED, ClusterDecision
from vnode.planning.failover import Purge
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PolicyNode

DECIDED: Final = "Decided"
PUBLISHED: Final = published.CONDITION
CLUSTERS_READY: Final = "ClustersReady"
CLUSTERS_LOST: Final = "ClustersLost"
CLUSTERS_FOUND: Final = "ClustersFound"
NO_CLUSTERS: Final = "NoClusters"
UNKNOWN_CLUSTERS: Final = "UnknownClusters"
INCOMPLETE: Final = "Incomplete"
_NAMES_SHOWN: Final = 10


def build(
    obj: Object,
    verdict: PolicyVerdict,
    nodes: Iterable[PolicyNode],
    publishing: PublishingState | None,
    now: datetime,
) -> Objects:
    """Build the conditions that a policy has now; Accepted comes first."""
    found = [(ACCEPTED, verdict.policy is not None, verdict.reason, verdict.message)]
    if verdict.gone:
        found.append((CLUSTERS_FOUND, False, UNKNOWN_CLUSTER, verdict.gone))

    decision = verdict.policy.decision if verdict.policy is not None else None
    if decision is not None and decision.reason != AWAITED:
        found.append((DECIDED, *decided(decision, nodes)))

    if publishing is not None:
        found.append((PUBLISHED, publishing.holds, publishing.reason, publishing.message))

    built = [
        status_conditions.build(obj, type_, holds, reason, message[:MESSAGE_LIMIT], now)
        for type_, holds, reason, message in found
    ]
    # When an agent starts, what was true before counts.
    awaited = {DECIDED} if decision is not None and decision.reason == AWAITED else set()
    if publishing is None and (verdict.policy is None or verdict.policy.publishing is not None):
        awaited.add(PUBLISHED)

    for type_ in sorted(awaited):
        built += [known] if (known := objects.condition(obj, type_)) else []

    return built


def of_lost(
    obj: Object,
    policy: Policy,
    nodes: Iterable[PolicyNode],
    moments: Mapping[str, datetime],
    now: datetime,
) -> Objects:
    """Build the condition of a policy about its clusters that are lost, with since when each is.

    Empty if none is, or if the policy does not say what becomes of their pods.
    """
    lost = sorted(
        node.name
        for node in nodes
        if node.name in moments and policy.clusters.include(node) and not policy.rejects(node)
    )
    failover = policy.failover
    if failover is None or not lost:
        return []

    names = [f"{name} since {objects.timestamp(moments[name])}" for name in lost]
    what = f"pods are replaced {failover.toleration:.0f} s after that"
    if failover.purge is Purge.NEVER:
        what = "their pods stay, as failover.purge is Never"
    elif failover.per_minute is not None:
        what += f", {failover.per_minute} in a minute at most"

    text = f"lost: {enumeration.some(names, _NAMES_SHOWN)}; {what}"[:MESSAGE_LIMIT]
    return [status_conditions.build(obj, CLUSTERS_READY, False, CLUSTERS_LOST, text, now)]


def merged(obj: Object, wanted: Objects) -> Objects | None:
    """Return all conditions of a policy with these for ours; None if that changes nothing."""
    types = {condition["type"] for condition in wanted}
    known: Objects = objects.status(obj).get("conditions") or []
    ended = {DECIDED, PUBLISHED, CLUSTERS_READY, CLUSTERS_FOUND} - types
    if not any(entry.get("type") in ended for entry in known):
        return status_conditions.merged(obj, *wanted)

    others = [entry for entry in known if entry.get("type") not in ended | types]
    return [*others, *wanted]


def decided(decision: ClusterDecision, nodes: Iterable[PolicyNode]) -> tuple[bool, str, str]:
    """Return status, reason and message of Decided, for a decision that was read."""
    if decision.problem:
        return False, decision.reason, f"pods of the policy stay pending: {decision.problem}"

    if not decision.clusters and not decision.oddities:
        why = f"pods of the policy stay pending: {decision.reference} selects no clusters"
        return False, NO_CLUSTERS, why

    if missing := decision.without_nodes(nodes):
        cure = "create a Target or ClusterTarget for each"
        text = enumeration.some(missing, _NAMES_SHOWN)
        why = f"{decision.reference} selects clusters without a virtual node: {text}; {cure}"
        return False, UNKNOWN_CLUSTERS, why

    if decision.oddities:
        return False, INCOMPLETE, f"some entries are ignored: {'; '.join(decision.oddities)}"

    names = [cluster.name for cluster in decision.clusters]
    return True, DECIDED, f"{decision.reference} selects {enumeration.some(names, _NAMES_SHOWN)}"
