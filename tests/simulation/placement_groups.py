"""Compares the live pods of one workload with its policy. Pure.

What excuses that a pod waits, whether the status says what is there, and where placeholders and
deletion costs have to be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tests.faults.snapshot import node_of
from tests.simulation.kube_scheduler import cpus
from vnode.api import keys, objects, placeholders
from vnode.api.objects import Object
from vnode.planning import seats
from vnode.planning.policy import Mode, Policy
from vnode.planning.revisions import Revision, have_superseded, revision_of
from vnode.planning.seats import Share

PLANNED = (Mode.SPREAD, Mode.FILL)


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """Pods of a workload that are planned together."""

    bound: Mapping[str, int]
    """Virtual node -> pods."""
    planned: Mapping[str, int]
    pods: tuple[Object, ...] = field(repr=False)

    def has_too_many(self, node: str) -> bool:
        """Tell whether more pods are bound to a node than planned for it."""
        return self.bound.get(node, 0) > self.planned.get(node, 0)


@dataclass(frozen=True, slots=True)
class Group:
    """The live pods of one workload, and the policy that divides them."""

    policy: Policy
    workload: str
    pods: tuple[Object, ...]
    shares: Mapping[str, Share]
    closed: frozenset[str]
    """Virtual nodes that take no more pods."""

    @property
    def bound(self) -> Counter[str]:
        """Virtual node -> pods."""
        return Counter(node for pod in self.pods if (node := node_of(pod)))

    def peers(self, pod: Object) -> Counter[str]:
        """Return virtual node -> pods, without those of older or newer revisions than the pod's."""
        own = revision_of(pod)
        revisions = [(node_of(each), revision_of(each)) for each in self.pods]
        return Counter(n for n, each in revisions if n and (each == own or each.maker != own.maker))

    def parts(self) -> list[PlannedPart]:
        """Return its pods, by revision if a rollout is unfinished.

        Each is documented to be planned by itself then: a pod is in its place by the plan of its
        own revision, whatever others of its cluster are. None where several Deployments are one
        workload.
        """
        found: dict[Revision, list[Object]] = defaultdict(list)
        for pod in self.pods:
            found[revision_of(pod)].append(pod)

        if not have_superseded(found):
            return [self.part(self.pods)]

        is_one = len({each.maker for each in found}) == 1
        return [self.part(pods) for pods in found.values()] if is_one else []

    @property
    def surge(self) -> int:
        """How many times its maximum a cluster may be planned for: for the newest revisions once,
        and once for each older one.

        `maxReplicas` is documented to be for the pods of each ReplicaSet: surge pods come on top,
        as users know it of Deployments.
        """
        revisions = {revision_of(pod) for pod in self.pods}
        return len(revisions) - len({each.maker for each in revisions}) + 1

    def part(self, pods: Iterable[Object], more: int = 0) -> PlannedPart:
        """Plan some of its pods, and as many more; those on other nodes than it may use stay."""
        pods = tuple(pods)
        able = {n: share for n, share in self.shares.items() if n not in self.closed}
        places = [node_of(pod) for pod in pods]
        number = sum(not node or node in able for node in places) + more
        plan = seats.plan(number, able.values(), self.workload).planned
        return PlannedPart(Counter(filter(None, places)), plan, pods)

    def excuses(self, pod: Object, node: str) -> bool:
        """Tell whether one of its pods may wait though that cluster has room.

        A larger one may wait there, which has the last place of a maximum.
        """
        share, bound = self.shares.get(node), self.bound
        if share is None or node in self.closed:
            return True

        is_single = self.policy.mode is Mode.SINGLE
        larger = sum(not node_of(each) and cpus(each) > cpus(pod) for each in self.pods)
        others = len(self.pods) - 1 if is_single else bound[node] + larger  # all are to fit in one
        if share.maximum is not None and others >= share.maximum:
            return True

        if is_single:
            most = [each for each, count in bound.items() if count == max(bound.values())]
            return bool(most) and most != [node]  # of several, either may be where all go

        if self.policy.mode is Mode.ANY:
            return False

        has_no_overflow = self.policy.overflow.max_candidates == 1
        return has_no_overflow or (share.weight == 0 and bound[node] >= share.minimum)


def misplaced(group: Group) -> Iterator[str]:
    """Find placeholders that nothing is to come of: none is where a replica is not better off."""
    shares, policy = group.shares, group.policy
    parts = [] if policy.by_capacity else group.parts()
    for pod in group.pods:
        here = node_of(pod)
        for node in placeholders.of(pod):
            where = f"{objects.key(pod)} on {here} has one on {node}"
            if policy.mode not in PLANNED or not policy.overflow.keep_unschedulable:
                yield f"{where}, and {policy.name} wants none"
            elif node not in shares:
                yield f"{where}, which is not of {policy.name}"
            elif here in shares and _is_worse(group, node, here):
                yield f"{where}, which is worse"
            elif parts and here in shares and not any(p.has_too_many(here) for p in parts):
                yield f"{where}, and runs where it is planned: {parts}"


def _is_worse(group: Group, node: str, here: str) -> bool:
    """Tell whether a cluster comes after another: by tier, once it has its minimum."""
    there = group.shares[node]
    return there.tier < group.shares[here].tier and group.bound[node] >= there.minimum


def lacks_cost(pod: Object) -> bool:
    """Tell whether a pod of a ReplicaSet that vnode has bound has no deletion cost."""
    owner = objects.controller_reference(pod) or {}
    is_ours = objects.spec(pod).get("schedulerName") == keys.PROXY_SCHEDULER and node_of(pod)
    has_cost = keys.DELETION_COST in objects.annotations(pod)
    return bool(is_ours) and owner.get("kind") == "ReplicaSet" and not has_cost


def miscounted(policy: Object, groups: list[Group]) -> Iterator[str]:
    """Compare the status of a policy with its pods."""
    name, status = objects.name(policy), objects.status(policy)
    found = {each["workload"]: each for each in status.get("workloads") or ()}
    if found.keys() != {group.workload for group in groups}:
        yield f"{name} has {sorted(found)}, not {sorted(group.workload for group in groups)}"
        return

    for group in groups:
        entry, replicas = found[group.workload], len(group.pods)
        parts: dict[str, Object] = defaultdict(dict)
        parts.update({each["cluster"]: each for each in entry["targets"]})
        running = {node: count for node, part in parts.items() if (count := part["running"])}
        runs = Counter(
            node_of(p) for p in group.pods if objects.status(p).get("phase") == "Running"
        )
        if entry["replicas"] != replicas or running != runs:
            yield f"{name}: {entry}, but of {replicas} pods {dict(runs)} run"

        planned = [part["planned"] for part in parts.values() if "planned" in part]
        if not planned or group.policy.mode is Mode.SINGLE:
            continue

        outside = sum(n for node, n in group.bound.items() if node not in group.shares)
        if sum(planned) + entry.get("unplaced", 0) + outside != replicas:
            yield f"{name}: {entry} is no plan for {replicas} pods, {outside} elsewhere"

        for share in group.shares.values():
            count = parts[share.node].get("planned", 0)
            most = None if share.maximum is None else share.maximum * group.surge
            if most is not None and count > max(most, group.bound[share.node]):
                yield f"{name}: {entry} is over a maximum: {share}"
