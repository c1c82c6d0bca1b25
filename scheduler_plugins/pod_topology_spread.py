"""Filter and Score by topologySpreadConstraints over virtual nodes.

A domain is a value of the topology key among virtual nodes. The pods that count are the proxies on
them, in the pod's namespace, that match the constraint's selector. Semantics are kube-scheduler's,
its default policies too (nodes that the pod's node affinity excludes do not count, tainted ones
do). Counts come ready-made from the snapshot.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduler_plugins import node_affinity
from vnode.api import constraint_size, objects, selectors, taints
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.requirements import Operator, Requirement
from vnode.api.selectors import Selector
from vnode.scheduling import events, status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind, EventReading
from vnode.scheduling.plugin import (
    MAX_SCORE,
    FilterPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status

_SOFT = "PodTopologySpread.soft"
_UNMET = "didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, compiled."""

    key: str
    max_skew: int
    min_domains: int
    selector: Selector | None
    """None matches no pod."""
    affinity: node_affinity.Required | None
    """Nodes that do not match it do not count; None: all count."""
    tolerations: Sequence[Object] | None
    """Nodes with taints beyond these do not count; None: all count."""

    def counts_in(self, node: VirtualNodeInfo) -> bool:
        """Return whether the pod is to be spread over this node, among others."""
        if self.affinity is not None and not self.affinity.matches(node):
            return False

        return self.tolerations is None or (
            taints.untolerated(node.taints, self.tolerations) is None
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """A constraint and the pods in its domains."""

    constraint: Constraint
    domains: Counter[str]
    """Domain -> pods that match; all domains are there."""
    own: int
    """1 if the pod itself matches, and so adds to the domain it goes to."""
    minimum: int = field(init=False)
    """The fewest pods of any domain; 0 if there are fewer domains than `minDomains`."""

    def __post_init__(self) -> None:
        few = len(self.domains) < self.constraint.min_domains
        fewest = 0 if few else min(self.domains.values(), default=0)
        object.__setattr__(self, "minimum", fewest)


class PodTopologySpread(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Filters by DoNotSchedule constraints, scores by ScheduleAnyway ones."""

    NAME = "PodTopologySpread"

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return changes of nodes anywhere, and of pods that count: they change the skew
        everywhere."""
        nodes = (EventKind.NODE_ADD, EventKind.NODE_LABELS, EventKind.NODE_TAINTS)
        return [*events.anywhere(*nodes), *events.of_pods(events.own_namespace, _read)]

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Count the domains of the hard constraints."""
        try:
            hard = spreads(pod, snapshot, snapshot.nodes, "DoNotSchedule")
        except ConfigError as error:
            return status.unresolvable(str(error))

        state.write(self.NAME, hard)
        return SUCCESS if hard else SKIP

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Reject a node if the pod would make the skew exceed `maxSkew`."""
        hard: list[Spread] = state.read(self.NAME)
        for spread in hard:
            constraint = spread.constraint
            domain = node.labels.get(constraint.key)
            if domain is None:
                return status.unresolvable(f"{_UNMET} (missing required label {constraint.key})")

            skew = spread.domains.get(domain, 0) + spread.own - spread.minimum
            if skew > constraint.max_skew:
                return status.unschedulable(
                    f"{_UNMET} (skew over {constraint.key} would be {skew}, "
                    f"maxSkew is {constraint.max_skew})"
                )

        return SUCCESS

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Count the domains of the soft constraints."""
        try:
            soft = spreads(pod, snapshot, nodes, "ScheduleAnyway")
        except ConfigError as error:
            return status.unresolvable(str(error))

        state.write(_SOFT, soft)
        return SUCCESS if soft else SKIP

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return, in thousandths, the pods in the domain, weighted by the number of domains.

        A node that lacks a key is scored -1, and put last.
        """
        soft: list[Spread] = state.read(_SOFT)
        total = 0.0
        for spread in soft:
            domain = node.labels.get(spread.constraint.key)
            if domain is None:
                return -1

            weight = math.log(len(spread.domains) + 2)
            total += spread.domains.get(domain, 0) * weight + spread.constraint.max_skew - 1

        return round(total * 1000)

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """Turn fewer pods into a higher score, in proportion to the fullest domain."""
        counted = [score for score in scores.values() if score >= 0]
        largest, smallest = max(counted, default=0), min(counted, default=0)
        for name, score in scores.items():
            if score < 0:
                scores[name] = 0
            elif largest == 0:
                scores[name] = MAX_SCORE
            else:
                scores[name] = MAX_SCORE * (largest + smallest - score) // largest


@dataclass(frozen=True, slots=True)
class _SpreadReading(EventReading):
    """Which pods of its namespace count for the constraints of a pod, or may."""

    namespace: str
    labels: Mapping[str, str]
    selectors: tuple[Selector, ...]
    cost: int

    def is_helped_by(self, other: _SpreadReading) -> bool:
        return self.namespace == other.namespace and any(
            selector.matches(other.labels) for selector in self.selectors
        )


def _read(pod: Object) -> _SpreadReading:
    listed = objects.spec(pod).get("topologySpreadConstraints") or ()
    try:
        constraint_size.check(listed, listed, "spec.topologySpreadConstraints")
        found = [selectors.from_label_selector(each.get("labelSelector")) for each in listed]
    except ConfigError:
        found = []  # what refuses the pod is in itself

    wanted = tuple(selector for selector in found if selector is not None)
    for selector in wanted:
        selector.prepare()

    cost = sum(1 + selector.cost for selector in wanted)
    return _SpreadReading(objects.namespace(pod), objects.labels(pod), wanted, cost)


def spreads(
    pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo], when: str
) -> list[Spread]:
    """Return the pod's constraints of one kind, counted. ConfigError if one cannot be read."""
    listed = objects.spec(pod).get("topologySpreadConstraints") or ()
    constraint_size.check(listed, listed, "spec.topologySpreadConstraints")
    chosen = [c for c in listed if c.get("whenUnsatisfiable") == when]
    if not chosen:
        return []

    affinity = node_affinity.required(pod)
    constraints = [_compile(pod, c, affinity) for c in chosen]
    namespace = frozenset((objects.namespace(pod),))
    selected = [(namespace, each.selector) for each in constraints if each.selector is not None]
    snapshot.pod_counts.selected.check(selected, "spec.topologySpreadConstraints")

    keys = {constraint.key for constraint in constraints}
    nodes = [node for node in nodes if keys <= node.labels.keys()]
    # Constraints that honor the same have the same nodes: affinity and tolerations are the pod's.
    counted: dict[tuple[bool, bool], list[VirtualNodeInfo]] = {}
    found: list[Spread] = []
    for each in constraints:
        honored = each.affinity is None, each.tolerations is None
        if honored not in counted:
            counted[honored] = [node for node in nodes if each.counts_in(node)]

        found.append(_count(pod, each, snapshot, counted[honored]))

    return found


def _compile(pod: Object, listed: Object, affinity: node_affinity.Required | None) -> Constraint:
    selector = selectors.from_label_selector(listed.get("labelSelector"))
    if selector is not None:
        labels = objects.labels(pod)
        selector = selector.also(
            Requirement(key, Operator.IN, frozenset((labels[key],)))
            for key in listed.get("matchLabelKeys") or ()
            if key in labels
        )

    honors_taints = listed.get("nodeTaintsPolicy", "Ignore") == "Honor"
    honors_affinity = listed.get("nodeAffinityPolicy", "Honor") == "Honor"
    return Constraint(
        key=str(listed["topologyKey"]),
        max_skew=int(listed.get("maxSkew", 1)),
        min_domains=int(listed.get("minDomains") or 1),
        selector=selector,
        affinity=affinity if honors_affinity else None,
        tolerations=(objects.spec(pod).get("tolerations") or ()) if honors_taints else None,
    )


def _count(
    pod: Object, constraint: Constraint, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
) -> Spread:
    """Count the pods on those nodes that count."""
    selector = constraint.selector
    matching: Mapping[str, int] = {}
    if selector is not None:
        matching = snapshot.pod_counts.matching(objects.namespace(pod), selector)

    own = int(selector is not None and selector.matches(objects.labels(pod)))
    domains: Counter[str] = Counter()
    for node in nodes:
        # The pod is counted where its own candidates are, and is not there.
        itself = own and snapshot.pod_counts.has(
            objects.namespace(pod), objects.uid(pod), node.name
        )
        domains[node.labels[constraint.key]] += matching.get(node.name, 0) - itself

    return Spread(constraint, domains, own)
