"""Counts proxies by virtual node, so that a scheduling cycle need not look at each of them.

Topology spread and pod affinity ask "how many pods of these namespaces that match this selector are
on each node", even spread asks that by owner, and anti-affinity asks which pods the placed ones
keep away. Owners and anti-affinity terms are always counted, selectors since they were asked for
(`vnode.scheduling.selector_counts`). So a cycle reads counts, however many pods there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from vnode.api.owners import OwnerKey
from vnode.api.pod_terms import PodTerm
from vnode.api.selectors import Selector
from vnode.scheduling.repelling_terms import RepellingTerms
from vnode.scheduling.selector_counts import SelectorCounts


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
        self._placed: dict[str, set[tuple[str, str]]] = {}  # (uid, node) by namespace; none empty
        # Controller -> node -> pods; no zeroes are kept.
        self._owned: dict[OwnerKey, Counter[str]] = {}
        self._repelling: dict[str, RepellingTerms] = {}  # by namespace of pods; none empty
        self.selected = SelectorCounts()

    def add(self, pod: BoundPod) -> None:
        """Count a proxy; its (uid, node) must not be counted yet."""
        self._placed.setdefault(pod.namespace, set()).add((pod.uid, pod.node))
        self._count(pod, 1)

    def remove(self, pod: BoundPod) -> None:
        """Stop counting a proxy."""
        in_namespace = self._placed[pod.namespace]
        in_namespace.remove((pod.uid, pod.node))
        if not in_namespace:
            del self._placed[pod.namespace]

        self._count(pod, -1)

    def owned(self, owner: OwnerKey) -> Mapping[str, int]:
        """Return node -> pods of that controller; nodes without any are absent. Do not change."""
        return self._owned.get(owner) or {}

    def matching(self, namespace: str, selector: Selector) -> Mapping[str, int]:
        """Return node -> pods of the namespace that match, for one of its pods. Do not change."""
        return self.selected.of(namespace, frozenset((namespace,)), selector)

    @property
    def repelling(self) -> Mapping[str, RepellingTerms]:
        """The required anti-affinity terms of placed pods, by the namespace of these. Do not
        change."""
        return self._repelling

    def has(self, namespace: str, uid: str, node: str) -> bool:
        """Return whether that pod is counted on that node."""
        return (uid, node) in self._placed.get(namespace, ())

    def _count(self, pod: BoundPod, step: int) -> None:
        if pod.owner:
            owned = self._owned.setdefault(pod.owner, Counter())
            owned[pod.node] += step
            if not owned[pod.node]:
                del owned[pod.node]

            if not owned:
                del self._owned[pod.owner]

        if pod.repels:
            self._count_repelling(pod, step)

        self.selected.count(pod.namespace, pod.labels, pod.node, step)

    def _count_repelling(self, pod: BoundPod, step: int) -> None:
        terms = self._repelling.get(pod.namespace)
        if terms is None:
            terms = self._repelling[pod.namespace] = RepellingTerms(pod.namespace)

        for term in pod.repels:
            terms.count(term, pod.node, step)

        if not terms:
            del self._repelling[pod.namespace]
