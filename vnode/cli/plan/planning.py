"""Compares each workload that a policy would be for with its plan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from vnode.api import keys, objects
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.cli import suggestions
from vnode.cli.plan import free_room
from vnode.cli.plan.free_room import ReportedTarget
from vnode.insight import named_pods
from vnode.placement.decisions import slices
from vnode.placement.policies import decoding, judging
from vnode.placement.policies.matching import PolicyIndex
from vnode.placement.status import accounts, conditions, counting
from vnode.placement.status.accounts import WorkloadAccount
from vnode.placement.status.counting import WorkloadCounts, WorkloadTally
from vnode.planning import policy_node, weighing
from vnode.planning.cluster_decision import ClusterDecision
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode, names_of
from vnode.planning.workload_key import workload_of

_SHORT: Final = {
    "deploy": "deployment",
    "deployments": "deployment",
    "sts": "statefulset",
    "statefulsets": "statefulset",
    "rs": "replicaset",
    "replicasets": "replicaset",
    "jobs": "job",
    "po": "pod",
    "pods": "pod",
}


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What a plan depends on."""

    nodes: Objects
    """The virtual nodes."""
    pods: Objects
    """The proxy pods."""
    policies: Objects
    """Those that there are."""
    decisions: Objects = field(default_factory=list)
    """PlacementDecisions where the policy's is."""
    told: Mapping[str, ReportedTarget] = field(default_factory=dict)
    """What targets say of themselves, by virtual node, if that matters for the policy."""
    unasked: tuple[str, ...] = ()
    """Why some could not be asked."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The arguments of the command."""

    policy: Object
    namespace: str
    """Of the workload that is asked for."""
    workload: str = ""
    """KIND/NAME; "": all that the policy would be for."""
    replicas: int | None = None
    """None: as many as there are."""


@dataclass(frozen=True, slots=True)
class PolicyPlan:
    """What a policy would do."""

    policy: Policy
    accounts: tuple[WorkloadAccount, ...]
    notes: tuple[str, ...] = ()


def make(request: PlanRequest, view: ClusterView, now: float) -> PolicyPlan:
    """Plan for that moment of the wall clock.

    Raises ConfigError, with the cure, where the agent would not accept the policy.
    """
    policy = judging.in_time(decoding.decode(request.policy), now)
    nodes = [policy_node.planned_node(node) for node in view.nodes]
    present = next((p for p in view.policies if _is_same(p, request.policy)), {})
    existed = judging.accepted_names(present)
    verdict = judging.judge(policy, _names(nodes, policy.namespace), existed)
    if verdict.policy is None:
        raise ConfigError(f"{policy.name}: {verdict.message}")

    notes = [verdict.gone] if verdict.gone else []
    if policy.decision is not None:
        decision = _decision(policy.decision, view)
        policy = replace(policy, decision=decision)
        holds, _, message = conditions.decided(decision, nodes)
        notes += [] if holds else [message]

    found: dict[str, tuple[WorkloadTally, Object | None]]
    if request.workload or request.replicas is not None:
        found = _asked(request, policy, view, notes)
    else:
        found = _matching(policy, view, nodes, notes)

    accounted = []
    for workload, (tally, pod) in sorted(found.items(), key=lambda e: (-e[1][0].replicas, e[0])):
        weights = None
        if policy.by_capacity:
            weights = _weights(policy, view, nodes, tally, pod)

        accounted.append(accounts.account(policy, workload, tally, nodes, weights=weights))

    if accounted and policy.by_capacity:
        notes += ["the policy has no weights: shares are by what is free now", *view.unasked]

    return PolicyPlan(policy, tuple(accounted), tuple(notes))


def _is_same(policy: Object, other: Object) -> bool:
    return decoding.reference(policy) == decoding.reference(other) and (
        objects.namespace(policy) == objects.namespace(other)
    )


def _decision(named: ClusterDecision, view: ClusterView) -> ClusterDecision:
    """Return what is decided; the virtual nodes say which profiles their Targets name."""
    profiles: dict[str, frozenset[str]] = {}
    for node in view.nodes:
        if profile := objects.annotations(node).get(keys.CLUSTER_PROFILE):
            profiles[profile] = profiles.get(profile, frozenset()) | {objects.name(node)}

    return slices.read(named.reference, view.decisions, profiles)


def _names(nodes: Iterable[PlannedNode], namespace: str) -> frozenset[str]:
    """Return the names that a policy of that namespace may use."""
    usable = policy_node.covering(nodes, namespace) if namespace else nodes
    return frozenset(name for node in usable for name in names_of(node))


def _asked(
    request: PlanRequest, policy: Policy, view: ClusterView, notes: list[str]
) -> dict[str, tuple[WorkloadTally, Object | None]]:
    """Return the pods of the workload that is asked for, or an imaginary one."""
    namespace = policy.namespace or request.namespace
    name = policy.name.partition("/")[2]
    workload = _key(request.workload or f"deployment/{name}", namespace)
    pods = [
        pod
        for pod in view.pods
        if request.workload and workload_of(pod, policy.group_by) == workload
    ]
    counts = WorkloadCounts()
    for pod in pods:
        counts.set(objects.key(pod), counting.counted(pod, lambda _pod: policy))

    tally = counts.of(policy.key).get(workload)
    if tally is None:
        if request.replicas is None:
            meant = suggestions.mistyped(workload.partition("/")[0], named_pods.KINDS)
            raise ConfigError(
                f"{workload} has no pods that run in targets: pass --replicas N for its plan"
                + (f". Did you mean {meant!r}?" if meant else "")
            )

        tally = WorkloadTally(namespace)

    if pods and PolicyIndex([policy]).of(pods[0]) is None:
        notes.append(f"the pods of {workload} have no labels that the policy selects")

    if request.replicas is not None:
        tally = tally.scaled(request.replicas)

    return {workload: (tally, pods[0] if pods else None)}


def _matching(
    policy: Policy, view: ClusterView, nodes: Iterable[PlannedNode], notes: list[str]
) -> dict[str, tuple[WorkloadTally, Object | None]]:
    """Return the pods of each workload that the policy would be for."""
    index = PolicyIndex([*_others(policy, view, nodes), policy])
    alone = PolicyIndex([policy])
    counts, first, left = WorkloadCounts(), dict[str, Object](), dict[str, str]()
    for pod in view.pods:
        winner = index.of(pod)
        if winner is policy:
            counts.set(objects.key(pod), counting.counted(pod, lambda _pod: policy))
            first.setdefault(workload_of(pod, policy.group_by), pod)
        elif winner is not None and alone.of(pod) is not None:
            left[workload_of(pod, winner.group_by)] = winner.name

    notes += [f"{workload}: {winner} comes first" for workload, winner in sorted(left.items())]
    found = counts.of(policy.key)
    return {workload: (tally, first.get(workload)) for workload, tally in found.items()}


def _others(policy: Policy, view: ClusterView, nodes: Iterable[PlannedNode]) -> list[Policy]:
    """Return the other policies that are in force."""
    found, known = [], list(nodes)
    for obj in view.policies:
        try:
            other = decoding.decode(obj)
        except ConfigError:
            continue

        is_same = other.key == policy.key
        names, existed = _names(known, other.namespace), judging.accepted_names(obj)
        if not is_same and judging.judge(other, names, existed).policy is not None:
            found.append(other)

    return found


def _key(workload: str, namespace: str) -> str:
    """Return the key of `KIND/NAME`."""
    kind, slash, name = workload.partition("/")
    if not slash or not kind or not name:
        raise ConfigError(f"{workload}: write KIND/NAME, such as deployment/web")

    kind = kind.lower().removesuffix(".apps").removesuffix(".batch")
    return f"{_SHORT.get(kind, kind)}/{namespace}/{name}"


def _weights(
    policy: Policy,
    view: ClusterView,
    nodes: Iterable[PlannedNode],
    tally: WorkloadTally,
    pod: Object | None,
) -> Mapping[str, int]:
    """Return what each cluster weighs, as it does when such a pod is scheduled now."""
    shares = policy.shares(policy_node.covering(nodes, tally.namespace))
    rooms = free_room.of_pod(pod, view.nodes, view.told, view.pods)
    return weighing.weigh(shares, rooms, tally.running + tally.starting).weights
