"""Filter and Score by pod affinity and anti-affinity over virtual nodes.

Proxies on virtual nodes count unless they are terminating; a domain is a value of the term's
topology key among those nodes. Semantics are kube-scheduler's, but for two: preferred terms of
placed pods do not score, and a placed pod keeps away those pods of its own namespace only that its
required anti-affinity selects. What is one machine there, is a whole cluster here: a user of one
namespace could keep all others out of all targets by one pod in each. An argument has it keep away
pods of other namespaces, too. The first of pods with affinity to each other may go anywhere. Counts
come ready-made from the snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec

from scheduler_plugins import affinity_reading
from vnode.api import objects, pod_terms
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.pod_terms import PodTerm
from vnode.api.selectors import Selector
from vnode.scheduling import events, status
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.plugin import (
    MAX_SCORE,
    FilterPlugin,
    Handle,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from vnode.scheduling.snapshot import Snapshot, VirtualNodeInfo
from vnode.scheduling.status import SKIP, SUCCESS, Status

_AFFINITY = "didn't match pod affinity rules"
_ANTI_AFFINITY = "didn't match pod anti-affinity rules"
_EXISTING_ANTI_AFFINITY = "didn't satisfy existing pods anti-affinity rules"
_PREFERRED = "InterPodAffinity.preferred"


@dataclass(frozen=True, slots=True)
class Counted:
    """Pods in each domain, a value of the topology key: those that a term selects, or that keep a
    pod off."""

    topology_key: str
    domains: Mapping[str, int]

    def at(self, node: VirtualNodeInfo) -> int:
        """Return the number of pods in the node's domain; 0 if it has none."""
        domain = node.labels.get(self.topology_key)
        return 0 if domain is None else self.domains.get(domain, 0)


@dataclass(frozen=True, slots=True)
class Demands:
    """The required terms for one pod."""

    together: tuple[Counted, ...]
    """Its required affinity: each domain must have one of the pods that all terms select."""
    is_first: bool
    """No such pod is anywhere, and the terms select this one itself."""
    apart: tuple[Counted, ...]
    """Its required anti-affinity: no domain may have any."""
    kept_off: tuple[Counted, ...]
    """Placed pods whose required anti-affinity selects this pod, by the topology key of that."""


class InterPodAffinityArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of the plugin."""

    cross_namespace_anti_affinity: bool = False
    """Whether pods of other namespaces count that keep a pod away by their own anti-affinity."""


class InterPodAffinity(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin):
    """Required terms filter, preferred ones score."""

    NAME = "InterPodAffinity"
    Args = InterPodAffinityArgs

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._crosses_namespaces = args.cross_namespace_anti_affinity

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Return changes of nodes anywhere, and of pods that may attract or repel this one."""
        return [
            *events.anywhere(EventKind.NODE_ADD, EventKind.NODE_LABELS),
            *events.of_pods(self._scope, affinity_reading.read),
        ]

    def _scope(self, pod: Object) -> frozenset[str] | None:
        """Return the namespaces of pods that may attract or repel a pod, None for all."""
        found = None if self._crosses_namespaces else pod_terms.namespaces(pod)
        return None if found is None else found | {objects.namespace(pod)}

    def pre_filter(self, state: CycleState, pod: Object, snapshot: Snapshot) -> Status:
        """Count the pods of all required terms that concern the pod."""
        try:
            demands = demands_of(pod, snapshot, crosses_namespaces=self._crosses_namespaces)
        except ConfigError as error:
            return status.unresolvable(str(error))

        state.write(self.NAME, demands)
        return SUCCESS if demands.together or demands.apart or demands.kept_off else SKIP

    def filter(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> Status:
        """Require the pods that it wants in the node's domain, and none that either keeps away."""
        demands: Demands = state.read(self.NAME)
        for wanted in demands.together:
            key = wanted.topology_key
            if key not in node.labels:
                return status.unresolvable(f"{_AFFINITY} (missing label {key})")

            if not wanted.at(node) and not demands.is_first:
                return status.unschedulable(f"{_AFFINITY} (topologyKey {key})")

        for unwanted in demands.apart:
            if unwanted.at(node):
                key = unwanted.topology_key
                return status.unschedulable(f"{_ANTI_AFFINITY} (topologyKey {key})")

        for refusing in demands.kept_off:
            if refusing.at(node):
                key = refusing.topology_key
                return status.unschedulable(f"{_EXISTING_ANTI_AFFINITY} (topologyKey {key})")

        return SUCCESS

    def pre_score(
        self, state: CycleState, pod: Object, snapshot: Snapshot, nodes: Sequence[VirtualNodeInfo]
    ) -> Status:
        """Count the pods that its preferred terms select."""
        try:
            near = pod_terms.preferred(pod, pod_terms.AFFINITY)
            far = pod_terms.preferred(pod, pod_terms.ANTI_AFFINITY)
            preferred = [*near, *((term, -weight) for term, weight in far)]
            _check([term for term, _weight in preferred], snapshot)
        except ConfigError as error:
            return status.unresolvable(str(error))

        own = _Own(pod, snapshot)
        counted = [(_count(term, own, snapshot), weight) for term, weight in preferred]
        state.write(_PREFERRED, counted)
        return SUCCESS if counted else SKIP

    def score(self, state: CycleState, pod: Object, node: VirtualNodeInfo) -> int:
        """Return the sum of the pods in the node's domain, times the weight of each term."""
        preferred: list[tuple[Counted, int]] = state.read(_PREFERRED)
        return sum(counted.at(node) * weight for counted, weight in preferred)

    def normalize_score(self, state: CycleState, pod: Object, scores: dict[str, int]) -> None:
        """Scale from 0 for the least to 100 for the most; 0 for all if they are equal."""
        least, most = min(scores.values(), default=0), max(scores.values(), default=0)
        for name, score in scores.items():
            scores[name] = MAX_SCORE * (score - least) // (most - least) if most > least else 0


class _Own:
    """Finds the nodes on which the pod itself is counted, by its candidates; they do not count."""

    def __init__(self, pod: Object, snapshot: Snapshot) -> None:
        self.namespace = objects.namespace(pod)
        self.labels = objects.labels(pod)
        self._uid = objects.uid(pod)
        self._snapshot = snapshot

    @cached_property
    def nodes(self) -> Collection[str]:
        """Nodes with candidates of the pod; searched on demand, since most pods have no terms."""
        has = self._snapshot.pod_counts.has
        return [n.name for n in self._snapshot if has(self.namespace, self._uid, n.name)]


def demands_of(pod: Object, snapshot: Snapshot, *, crosses_namespaces: bool = False) -> Demands:
    """Count the pod's required terms, and those against it. ConfigError if one cannot be read.

    Those of pods of other namespaces count if `crosses_namespaces`.
    """
    near = pod_terms.required(pod, pod_terms.AFFINITY)
    far = pod_terms.required(pod, pod_terms.ANTI_AFFINITY)
    own, met = _Own(pod, snapshot), _meeting(near)
    _check([*met, *far], snapshot)
    together = tuple(_count(term, own, snapshot) for term in met)
    return Demands(
        together=together,
        is_first=not any(counted.domains for counted in together)
        and all(term.matches(own.namespace, own.labels) for term in near),
        apart=tuple(_count(term, own, snapshot) for term in far),
        kept_off=tuple(_kept_off(own, far, snapshot, crosses_namespaces=crosses_namespaces)),
    )


def _meeting(terms: Sequence[PodTerm]) -> list[PodTerm]:
    """Reduce each term to the pods that all of them select."""
    met: Selector | None = Selector()
    namespaces: frozenset[str] | None = None
    for term in terms:
        met = met.also(term.selector.requirements) if met and term.selector else None
        if term.namespaces is not None:
            namespaces = term.namespaces if namespaces is None else namespaces & term.namespaces

    return [PodTerm(term.topology_key, met, namespaces) for term in terms]


def _check(terms: Iterable[PodTerm], snapshot: Snapshot) -> None:
    """Raise ConfigError if it would take too long to count what terms select."""
    selected = [(term.namespaces, term.selector) for term in terms if term.selector is not None]
    snapshot.pod_counts.selected.check(selected, "spec.affinity")


def _count(term: PodTerm, own: _Own, snapshot: Snapshot) -> Counted:
    counts: Counter[str] = Counter()
    if term.selector is not None:
        selected = snapshot.pod_counts.selected
        counts = Counter(selected.of(own.namespace, term.namespaces, term.selector))
        if term.matches(own.namespace, own.labels):
            counts.subtract(own.nodes)

    return Counted(term.topology_key, _by_domain(term.topology_key, counts, snapshot))


def _kept_off(
    own: _Own, far: Sequence[PodTerm], snapshot: Snapshot, *, crosses_namespaces: bool
) -> Iterator[Counted]:
    """Count the pods whose terms select the pod. ConfigError if its namespace has too many."""
    repelling = snapshot.pod_counts.repelling
    if present := repelling.get(own.namespace):
        present.check(own.labels)

    found: dict[str, Counter[str]] = {}
    for namespace in repelling if crosses_namespaces else {own.namespace} & repelling.keys():
        for term, nodes in repelling[namespace].against(own.namespace, own.labels):
            counts = found.setdefault(term.topology_key, Counter())
            for node, pods in nodes.items():
                counts[node] += pods

            if namespace == own.namespace and term in far:
                counts.subtract(own.nodes)

    for key, counts in found.items():
        if domains := _by_domain(key, counts, snapshot):
            yield Counted(key, domains)


def _by_domain(key: str, counts: Mapping[str, int], snapshot: Snapshot) -> Mapping[str, int]:
    """Sum the counts by domain; no zeroes are kept."""
    domains: Counter[str] = Counter()
    for node in snapshot:
        domain = node.labels.get(key)
        if domain is not None and (count := counts.get(node.name, 0)) > 0:
            domains[domain] += count

    return domains
