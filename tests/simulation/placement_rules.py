"""What placement policies promise: at every binding, at rest, and over an hour of steady load.

What is expected is worked out from the objects alone: the pods, the policies that are there, and
what is free in a target. Where something could not yet be known to the agent (a policy that has
just changed, a watch that was cut), nothing is expected of bindings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tests.apiserver.store import Change
from tests.faults.snapshot import Violation, node_of
from tests.simulation.clusters import SimulatedCluster
from tests.simulation.placement_groups import PLANNED, Group, lacks_cost, miscounted, misplaced
from tests.simulation.placement_history import PlacementHistory
from tests.simulation.policies import UNKNOWN
from tests.simulation.schedule import Schedule, WorkloadOwner
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.placement.policies import decoding
from vnode.placement.policies.matching import PolicyIndex
from vnode.placement.status import accounts, counting
from vnode.planning import policy_node
from vnode.planning.move_policy import FailbackMode
from vnode.planning.policy import Mode, Policy
from vnode.planning.unfinished_move import moved_for
from vnode.planning.workload_key import workload_of

_HEARD = 20.0
"""Seconds after which nothing is bound that was decided before a change, where nothing fails: an
attempt may wait ten for a candidate of an older form of its pod to go."""


@dataclass(slots=True)
class PlacementRules:
    """Looks at everything, and hears of each binding."""

    source: SimulatedCluster
    targets: Mapping[str, SimulatedCluster]
    schedule: Schedule
    violations: list[Violation] = field(default_factory=list)
    _overflowed: set[str] = field(default_factory=set)  # workloads of which a pod ever did
    _handed: dict[str, str] = field(default_factory=dict)  # UID -> UID of the pod that replaces it
    _history: PlacementHistory = field(default_factory=lambda: PlacementHistory(_HEARD))
    _changed: float = 0.0  # when something that plans depend on last changed

    def follow(self) -> None:
        """Hear of all changes from now on."""
        if self.schedule.policies.changes:
            self.source.server.store.changed.add(self._on_change)

    def group_of(self, pod: Object) -> Group | None:
        """Return the workload of a pod that has a policy."""
        uid = objects.uid(pod)
        found = (g for g in self._groups() if any(objects.uid(p) == uid for p in g.pods))
        return next(found, None)

    def at_rest(self) -> Iterator[tuple[str, str]]:
        """Yield each rule that is broken now, with what breaks it."""
        if not self.schedule.policies.changes:
            return

        groups = self._groups()
        yield from self._untrue(groups)
        for group in groups:
            for what in self._unplanned(group):
                yield "stable plans are kept", what

            for what in misplaced(group):
                yield "placeholders wait in better clusters", what

            for pod in group.pods if group.policy.mode in PLANNED else ():
                if lacks_cost(pod):
                    yield "planned pods have a deletion cost", objects.key(pod)

    def resting(self) -> dict[str, object]:
        """Return what an hour of steady load must leave as it is."""
        found: dict[str, object] = {}
        for group in self._groups():
            for pod in group.pods:
                found[f"pod {objects.key(pod)} {objects.uid(pod)}"] = node_of(pod)

        live = {objects.uid(pod) for group in self._groups() for pod in group.pods}
        for name, cluster in self.targets.items():
            for chaperon in cluster.server.store.all(kinds.POD_CHAPERONS):
                if objects.labels(chaperon).get(keys.PARENT_UID) in live:
                    found[f"{objects.key(chaperon)} in {name}"] = objects.uid(chaperon)

        for policy in self._policies():
            workloads = objects.status(policy).get("workloads") or ()
            found[f"plans of {objects.name(policy)}"] = [_lasting(each) for each in workloads]

        return found

    def moved_in_vain(self, known: Collection[str]) -> list[str]:
        """Return the pods that went back on the word of placeholders, and overflowed once more.

        `known` are the UIDs of those that there were when all had settled.
        """
        return [
            objects.key(pod)
            for group in self._groups()
            for pod in group.pods
            if group.policy.failback.mode is FailbackMode.PLACEHOLDER
            and not group.policy.drains
            and objects.uid(pod) not in known
            and keys.OVERFLOWED_FROM in objects.annotations(pod)
        ]

    def _untrue(self, groups: list[Group]) -> Iterator[tuple[str, str]]:
        """Compare the statuses of policies with what there is."""
        for policy in self._policies():
            verdict = (objects.condition(policy, "Accepted") or {}).get("status")
            expected = "False" if _is_wrong(policy) else "True"
            if verdict != expected:
                yield "policies say whether they count", f"{objects.name(policy)}: {verdict}"
                continue

            mine = [g for g in groups if g.policy.name == decoding.reference(policy)]
            for what in miscounted(policy, mine):
                yield "statuses have the sums", what

            for what in self._outdated(policy, mine):
                yield "statuses have the plan of the moment", what

    def _outdated(self, policy: Object, groups: list[Group]) -> Iterator[str]:
        """Compare the status of a policy with what `vnode plan` would say."""
        found = {each["workload"]: each for each in objects.status(policy).get("workloads") or ()}
        nodes = [policy_node.planned_node(n) for n in self.source.server.store.all(kinds.NODES)]
        for group in groups:
            if group.workload not in found or group.policy.by_capacity:
                continue

            counts = counting.WorkloadCounts()
            for pod in group.pods:
                counts.set(objects.key(pod), counting.counted(pod, lambda _, g=group: g.policy))

            [tally] = counts.of(group.policy.key).values()
            account = accounts.account(group.policy, group.workload, tally, nodes)
            planned = {each.cluster: each.planned for each in account.targets if each.planned}
            entries = found[group.workload]["targets"]
            told = {each["cluster"]: each["planned"] for each in entries if each.get("planned")}
            if told != planned:
                yield f"{objects.name(policy)}: {group.workload}: {told} instead of {planned}"

    def _policies(self) -> list[Object]:
        return self.source.server.store.all(kinds.PLACEMENT_POLICIES)

    def _groups(self) -> list[Group]:
        policies = [decoding.decode(each) for each in self._policies() if not _is_wrong(each)]
        if not policies:
            return []

        index = PolicyIndex(policies)
        found: dict[tuple[str, str], tuple[Policy, list[Object]]] = {}
        for pod in self.source.pods():
            policy = index.of(pod) if _lives(pod) else None
            if policy is not None:
                workload = workload_of(pod, policy.group_by)
                found.setdefault((policy.name, workload), (policy, []))[1].append(pod)

        nodes = [policy_node.planned_node(n) for n in self.source.server.store.all(kinds.NODES)]
        closed = frozenset(node.name for node in nodes if not node.takes_pods)
        return [
            Group(policy, key[1], tuple(pods), {s.node: s for s in policy.shares(nodes)}, closed)
            for key, (policy, pods) in found.items()
        ]

    def _on_change(self, kind: Kind, change: Change) -> None:
        now = asyncio.get_running_loop().time()
        if kind in (kinds.PLACEMENT_POLICIES, kinds.NODES):
            old, new = objects.spec(change.old or {}), objects.spec(change.new or {})
            self._changed = now if old != new else self._changed

        if kind is kinds.NODES and change.new is not None:
            self._history.on_node(change.new, now)

        if kind is kinds.PODS:
            self._history.on_pod(change.old, change.new, now)

        if kind is not kinds.PODS or change.new is None:
            return

        pod = change.new
        if replaced := objects.annotations(pod).get(keys.PRESERVED_FROM):
            self._on_handed(replaced, objects.uid(pod))

        if not self.schedule.all_is_well:
            return

        if "overflow" in objects.annotations(pod).get(keys.PLACED, ""):
            self._overflowed.add(objects.labels(pod).get("app", ""))

        is_new = node_of(pod) and change.old is not None and not node_of(change.old)
        if is_new and (now - self._changed > _HEARD or self.schedule.policies.are_stable):
            self._on_bound(pod)

    def _on_handed(self, replaced: str, replacement: str) -> None:
        """Look at a pod that was given what another one has handed on; both are UIDs."""
        before = self._handed.get(replaced, replacement)
        self._handed[replaced] = replacement
        if before != replacement and any(objects.uid(p) == before for p in self.source.pods()):
            self._wrong("a pod hands on to one other pod", f"{replaced} to {before}, {replacement}")

    def _on_bound(self, pod: Object) -> None:
        """Look at a pod that was bound just now, where nothing fails and all is known."""
        group = self.group_of(pod)
        if group is None or self._has_strangers(group):
            return

        node, bound = node_of(pod), group.bound
        share, key = group.shares.get(node), objects.key(pod)
        if share is None:
            self._wrong("pods go to clusters of their policy", f"{key} is on {node}")
        elif share.maximum is not None and group.peers(pod)[node] > share.maximum:
            self._wrong("maximums are kept", f"{key}: {dict(bound)}, {share}")
        elif _is_together(group.policy, pod) and bound[node] < max(bound.values()):
            self._wrong("Single keeps pods together", f"{key} is on {node}: {dict(bound)}")

        if not objects.annotations(pod).get(keys.PLACED):
            self._wrong("planned pods say why they are there", key)

    def _has_strangers(self, group: Group) -> bool:
        """Tell whether users have bound pods of the group themselves."""
        chosen = {workload.name for workload in self.schedule.workloads if workload.node}
        return any(objects.labels(pod).get("app") in chosen for pod in group.pods)

    def _wrong(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, what))

    def _unplanned(self, group: Group) -> Iterator[str]:
        """Compare what is bound with the plan, where nothing ever made them differ."""
        schedule = self.schedule
        if (
            not schedule.all_is_well
            or not schedule.policies.are_stable
            or self._has_strangers(group)
        ):
            return

        policy, bound = group.policy, group.bound
        if policy.mode is Mode.SINGLE and len(bound) > 1:
            yield f"{group.workload} is in {dict(bound)}"

        if policy.mode not in PLANNED or policy.by_capacity:
            return

        owners = {w.name: w.owner for w in schedule.workloads}
        names = {objects.labels(pod).get("app", "") for pod in group.pods}
        by = {owners[name] for name in names}
        if by - {WorkloadOwner.REPLICA_SET, WorkloadOwner.STATEFUL_SET} or names & self._overflowed:
            return

        if self._history.began_without(group.pods, group.shares):
            return

        for part in group.parts():
            most = group.part(part.pods, self._history.vacated(part.pods))
            if any(most.has_too_many(node) for node in part.bound):
                yield f"{group.workload} is in {dict(part.bound)}, planned is {dict(part.planned)}"


def _is_together(policy: Policy, pod: Object) -> bool:
    """Tell whether a pod goes where the others are: all but those that are being moved as one.

    That goes on when its reason is over, and the pods say so; in the end all are in one place.
    """
    return policy.mode is Mode.SINGLE and not policy.drains and moved_for(pod) is None


def _lasting(workload: Object) -> Object:
    """Return what a status says of a workload, without moments: these pass, as users expect."""
    targets = [
        {field: value for field, value in each.items() if field != "noMovesUntil"}
        for each in workload["targets"]
    ]
    return {**workload, "targets": [each for each in targets if any(map(_counts, each.values()))]}


def _counts(value: object) -> bool:
    """Tell whether a value of an entry is the number of anything."""
    return isinstance(value, int) and value > 0


def _lives(pod: Object) -> bool:
    is_proxy = objects.spec(pod).get("schedulerName") == keys.PROXY_SCHEDULER or node_of(pod)
    return bool(is_proxy) and not objects.is_finished(pod) and not objects.is_terminating(pod)


def _is_wrong(policy: Object) -> bool:
    return UNKNOWN in (objects.spec(policy).get("clusters") or {}).get("names", ())
