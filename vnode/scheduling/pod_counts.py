"""Counts proxies by virtual node, so that a scheduling cycle need not look at each of them.

Topology spread and pod affinity ask "how many pods of this namespace that match this selector are
on each node", even spread asks that by owner, and anti-affinity asks which pods the placed ones
keep away. Owners and anti-affinity terms are always counted. A selector is counted once when it is
first asked for, and from then on with every pod that comes or goes. So a cycle reads counts,
however many pods there are.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api.owners import OwnerKey
from vnode.api.pod_terms import PodTerm
from vnode.api.selectors import Selector

_SELECTOR_LIMIT: Final = 512  # the least recently asked for is forgotten, and recounted when needed


@dataclass(frozen=True, slots=True)
class BoundPod:
    """One proxy on one node."""

    uid: str
    node: str
    namespace: str
    owner: OwnerKey | None
    labels: Mapping[str, str]
    repels: tuple[PodTerm, ...] = ()
    """Its required anti-affinity."""


class PodCounts:
    """Counts pods; the cache writes them, plugins read them through the snapshot."""

    def __init__(self) -> None:
        # By namespace, then by (uid, node).
        self._placed: dict[str, dict[tuple[str, str], BoundPod]] = {}
        # Controller -> node -> pods; no zeroes are kept.
        self._owned: dict[OwnerKey, Counter[str]] = {}
        # Namespace of pods -> anti-affinity term -> node -> pods that have it; no zeroes, no empty
        # terms.
        self._repelling: dict[str, dict[PodTerm, Counter[str]]] = {}
        # Exactly what a full count would give; in order of use.
        self._matching: OrderedDict[tuple[str, Selector], Counter[str]] = OrderedDict()
        # Namespace -> its selectors in `_matching`.
        self._selectors: dict[str, set[Selector]] = {}

    def add(self, pod: BoundPod) -> None:
        """Count a proxy; its (uid, node) must not be counted yet."""
        self._placed.setdefault(pod.namespace, {})[pod.uid, pod.node] = pod
        self._count(pod, 1)

    def remove(self, pod: BoundPod) -> None:
        """Stop counting a proxy."""
        in_namespace = self._placed[pod.namespace]
        del in_namespace[pod.uid, pod.node]
        if not in_namespace:
            del self._placed[pod.namespace]

        self._count(pod, -1)

    def owned(self, owner: OwnerKey) -> Mapping[str, int]:
        """Return node -> pods of that controller; nodes without any are absent. Do not change."""
        return self._owned.get(owner) or {}

    def matching(self, namespace: str, selector: Selector) -> Mapping[str, int]:
        """Return node -> pods of the namespace that match. Do not change."""
        key = (namespace, selector)
        counts = self._matching.get(key)
        if counts is None:
            return self._start_counting(key)

        self._matching.move_to_end(key)
        return counts

    def matching_in(self, namespaces: frozenset[str] | None, selector: Selector) -> Counter[str]:
        """Return the sum over these namespaces, or with None over all that have proxies.

        The counter is the caller's own.
        """
        total: Counter[str] = Counter()
        for namespace in self._placed.keys() if namespaces is None else namespaces:
            total.update(self.matching(namespace, selector))

        return total

    @property
    def repelling(self) -> Mapping[str, Mapping[PodTerm, Mapping[str, int]]]:
        """The required anti-affinity terms of placed pods, by the namespace of these, each with
        node -> pods that have it. Do not change."""
        return self._repelling

    def has(self, namespace: str, uid: str, node: str) -> bool:
        """Return whether that pod is counted on that node."""
        return (uid, node) in self._placed.get(namespace, {})

    def _start_counting(self, key: tuple[str, Selector]) -> Counter[str]:
        namespace, selector = key
        counts = Counter(
            pod.node
            for pod in self._placed.get(namespace, {}).values()
            if selector.matches(pod.labels)
        )
        self._matching[key] = counts
        self._selectors.setdefault(namespace, set()).add(selector)
        if len(self._matching) > _SELECTOR_LIMIT:
            (old_namespace, old_selector), _ = self._matching.popitem(last=False)
            self._selectors[old_namespace].discard(old_selector)

        return counts

    def _count(self, pod: BoundPod, step: int) -> None:
        if pod.owner:
            owned = self._owned.setdefault(pod.owner, Counter())
            _step(owned, pod.node, step)
            if not owned:
                del self._owned[pod.owner]

        if pod.repels:
            self._count_repelling(pod, step)

        for selector in self._selectors.get(pod.namespace, ()):
            if selector.matches(pod.labels):
                _step(self._matching[pod.namespace, selector], pod.node, step)

    def _count_repelling(self, pod: BoundPod, step: int) -> None:
        terms = self._repelling.setdefault(pod.namespace, {})
        for term in pod.repels:
            repelling = terms.setdefault(term, Counter())
            _step(repelling, pod.node, step)
            if not repelling:
                del terms[term]

        if not terms:
            del self._repelling[pod.namespace]


def _step(counts: Counter[str], node: str, step: int) -> None:
    counts[node] += step
    if not counts[node]:
        del counts[node]
