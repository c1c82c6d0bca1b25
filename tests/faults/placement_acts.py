"""What users do to placement policies while other things break, and what must come of it: pure.

A policy is for one Deployment or StatefulSet, whose name it has. Its targets are labels of virtual
nodes, so that a Target which somebody removes for a moment leaves it in force; those that drain a
cluster name it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tests.faults.plan import MOST_REPLICAS, TARGETS, Wish, WorkloadKind
from tests.faults.snapshot import APP
from tests.simulation.placement_groups import PLANNED, Group, lacks_cost, miscounted, misplaced
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object, Objects
from vnode.placement.policies import decoding
from vnode.planning import policy_node, seats
from vnode.planning.policy import Mode
from vnode.planning.workload_key import workload_of

_ACTS = (0, 1, 1, 2, 3)  # in one step


@dataclass(frozen=True, slots=True)
class PolicyAct:
    """A policy is as it says from then on; without a spec it is deleted."""

    at: float
    name: str
    spec: Object | None

    def __str__(self) -> str:
        return f"+{self.at:.1f}s placement policy {self.name}: {self.spec or 'delete'}"

    def object(self, namespace: str) -> Object:
        """Return what the user applies."""
        return {
            "apiVersion": kinds.PLACEMENT_POLICIES.api_version,
            "kind": kinds.PLACEMENT_POLICIES.kind,
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": self.spec,
        }


def draw(dice: random.Random, wish: Wish, there: Collection[str]) -> list[PolicyAct]:
    """Draw what happens in a step; `there` are the policies that there are.

    A policy whose workload is not wanted any more goes.
    """
    workloads = {
        name
        for name, workload in wish.workloads.items()
        if workload.kind in (WorkloadKind.DEPLOYMENT, WorkloadKind.STATEFUL_SET)
        and workload.replicas <= MOST_REPLICAS
        and not workload.on
        and not workload.gang  # most policies divide pods among clusters
    }
    acts = [PolicyAct(0.0, name, None) for name in sorted(set(there) - workloads)]
    chosen = sorted(workloads)
    dice.shuffle(chosen)
    for name in chosen[: dice.choice(_ACTS)]:
        is_end = name in there and dice.random() < 0.25
        at = round(dice.uniform(0, 8), 1)
        acts.append(PolicyAct(at, name, None if is_end else _spec(dice, name)))

    return acts


def _spec(dice: random.Random, name: str) -> Object:
    mode = dice.choice(("Spread", "Spread", "Fill", "Single"))
    spec: Object = {"selector": {"matchLabels": {APP: name}}, "mode": mode}
    if dice.random() < 0.3:
        spec["drain"] = [{"cluster": dice.choice(TARGETS), "maxReplicas": dice.choice((0, 0, 1))}]

    most = dice.choice((1, 2, "50%"))
    if mode == "Single":
        return {**spec, "failback": {"maxConcurrent": most}}

    if dice.random() < 0.4:
        changes = ["PolicyChanged", "ClusterJoined", "LabelsChanged"]
        spec["reschedule"] = {"when": dice.sample(changes, dice.randint(1, 3))}

    spec["overflow"] = {
        "afterUnschedulableFor": f"{dice.choice((3, 10))}s",
        "keepUnschedulable": dice.random() < 0.7,
    }
    how = dice.choice(("Placeholder", "Probe", "Never"))
    spec["failback"] = {"mode": how, "stabilization": "3s", "maxConcurrent": most}
    spec["targets"] = [
        {
            "selector": {"matchLabels": {keys.TARGET_NAME: target}},
            "weight": dice.choice((1, 1, 2, 3)),
            "minReplicas": dice.choice((0, 0, 1, 2)),
        }
        for target in dice.sample(TARGETS, len(TARGETS))
    ]
    return spec


def drained(spec: Object) -> frozenset[str]:
    """Return the targets that a policy drains, if only in part."""
    return frozenset(drain["cluster"] for drain in spec.get("drain", ()))


def group_of(policy: Object, pods: Objects, nodes: Objects) -> Group | None:
    """Return the workload of a policy; None if it has no pods."""
    name = objects.name(policy)
    live = [
        pod
        for pod in pods
        if objects.labels(pod).get(APP) == name
        and not objects.is_terminating(pod)
        and not objects.is_finished(pod)
    ]
    if not live:
        return None

    decoded = decoding.decode(policy)
    known = [
        policy_node.planned_node(node)
        for node in nodes
        if keys.CLUSTER_TARGET_NAME in objects.labels(node)
        or keys.TARGET_NAME in objects.labels(node)
    ]
    shares = {share.node: share for share in decoded.shares(known)}
    closed = frozenset(node.name for node in known if not node.takes_pods)
    return Group(decoded, workload_of(live[0]), tuple(live), shares, closed)


def wrong_in(policy: Object, group: Group | None, *, is_rebalanced: bool) -> Iterator[str]:
    """Yield what is wrong with a policy once all is well, and its pods at its plan if they are."""
    name = objects.name(policy)
    if (objects.condition(policy, "Accepted") or {}).get("status") != "True":
        yield f"{name} is not in force: {objects.condition(policy, 'Accepted')}"
        return

    yield from miscounted(policy, [group] if group else [])
    if group is None:
        return

    yield from misplaced(group)
    for pod in group.pods if group.policy.mode in PLANNED else ():
        if lacks_cost(pod):
            yield f"{objects.key(pod)} has no deletion cost"

    if is_rebalanced:
        yield from _unplanned(group)


def _unplanned(group: Group) -> Iterator[str]:
    bound: Mapping[str, int] = dict(group.bound)
    if group.policy.mode is Mode.SINGLE:
        if len(bound) > 1:
            yield f"{group.workload} is kept together, but in {bound}"

        return

    able = [share for share in group.shares.values() if share.node not in group.closed]
    plan = seats.plan(len(group.pods), able, group.workload).planned
    if bound != dict(plan):
        yield f"{group.workload} is in {bound}, planned is {dict(plan)}"

    if sum(share.minimum for share in able) <= len(group.pods):
        for share in able:
            if bound.get(share.node, 0) < share.minimum:
                yield f"{group.workload} is in {bound}, {share.node} is to have {share.minimum}"
