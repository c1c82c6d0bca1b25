"""Finds the anti-affinity terms of placed pods that keep another pod off.

Each placed pod may have terms of its own, so that a namespace of thousands of pods has tens of
thousands of them, and each pod of it to be placed would be compared with all. So terms are found by
a label that a pod must have for them to select it. Those that select pods by what these do not have
are compared one by one; where that would take long, the pod is refused, which concerns its own
namespace only (docs/decisions/0122).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from vnode.api.errors import ConfigError
from vnode.api.pod_terms import PodTerm
from vnode.api.requirements import ABSENT, Operator
from vnode.api.selectors import Selector

MOST_COMPARED: Final = 15_000
"""Expressions, and one for each term: some 40 ms for one pod."""

_VALUES: Final = 8  # of an expression at most for its term to be found by each, else by the key


class _TermKey(NamedTuple):
    """By what a term is found: a label, or its key if `value` is None, or nothing at all."""

    concerns_own: bool
    """Whether it may select pods of the namespace of the pods that have it."""
    key: str | None = None
    value: str | None = None


@dataclass(slots=True)
class _TermsOfKey:
    """The terms of one key, and what comparing a pod with all of them costs."""

    terms: dict[PodTerm, None] = field(default_factory=dict)
    cost: int = 0


@dataclass(slots=True)
class _RepellingTerm:
    """A term that some pods have."""

    keys: Sequence[_TermKey]
    nodes: Counter[str] = field(default_factory=Counter)
    """Node -> pods that have it; no zeroes."""


class RepellingTerms:
    """The required anti-affinity terms of the placed pods of one namespace."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._terms: dict[PodTerm, _RepellingTerm] = {}  # none without nodes
        self._by_key: dict[_TermKey, _TermsOfKey] = {}  # each term by at least one; none empty

    def __len__(self) -> int:
        return len(self._terms)

    def count(self, term: PodTerm, node: str, step: int) -> None:
        """Count a pod with that term that came (1) or went (-1)."""
        known = self._terms.get(term)
        if known is None:
            known = self._terms[term] = _RepellingTerm(_keys(term, self._namespace))
            for key in known.keys:
                of_key = self._by_key.setdefault(key, _TermsOfKey())
                of_key.terms[term] = None
                of_key.cost += _cost(term)

        known.nodes[node] += step
        if not known.nodes[node]:
            del known.nodes[node]

        if not known.nodes:
            self._drop(term)

    def against(
        self, namespace: str, labels: Mapping[str, str]
    ) -> Iterator[tuple[PodTerm, Mapping[str, int]]]:
        """Yield the terms that select a pod, each with node -> pods that have it."""
        for of_key in self._compared(namespace, labels):
            for term in of_key.terms:
                if term.matches(namespace, labels):
                    yield term, self._terms[term].nodes

    def check(self, labels: Mapping[str, str]) -> None:
        """Raise ConfigError if it would take too long to compare a pod of the same namespace."""
        compared = sum(of_key.cost for of_key in self._compared(self._namespace, labels))
        if compared > MOST_COMPARED:
            raise ConfigError(
                "there are too many anti-affinity terms of pods that run in this namespace: have "
                "them select pods by a label that these must have (matchLabels), or use fewer"
            )

    def _compared(self, namespace: str, labels: Mapping[str, str]) -> Iterator[_TermsOfKey]:
        for concerns_own in (True,) if namespace == self._namespace else (True, False):
            keys = [_TermKey(concerns_own)]
            for key, value in labels.items():
                keys += (_TermKey(concerns_own, key), _TermKey(concerns_own, key, value))

            yield from filter(None, map(self._by_key.get, keys))

    def _drop(self, term: PodTerm) -> None:
        for key in self._terms.pop(term).keys:
            of_key = self._by_key[key]
            del of_key.terms[term]
            of_key.cost -= _cost(term)
            if not of_key.terms:
                del self._by_key[key]


def _keys(term: PodTerm, namespace: str) -> list[_TermKey]:
    """Return the keys by which a term of a pod of that namespace is found."""
    concerns_own = term.namespaces is None or namespace in term.namespaces
    requirements = (term.selector or Selector()).requirements
    needed = [each for each in requirements if each.operator not in ABSENT]
    if not needed:
        return [_TermKey(concerns_own)]

    exact = [each for each in needed if each.operator is Operator.IN]
    best = min(exact or needed, key=lambda each: len(each.values))
    if exact and len(best.values) <= _VALUES:
        return [_TermKey(concerns_own, best.key, value) for value in best.values]

    return [_TermKey(concerns_own, best.key)]


def _cost(term: PodTerm) -> int:
    return 1 + len(term.selector.requirements if term.selector else ())
