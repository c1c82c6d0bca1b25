"""Counts the placed pods that selectors match, by virtual node.

A selector is counted once when it is first asked for, and from then on with every pod that comes or
goes. What is counted for the pods of one namespace, others cannot push out: each namespace has the
same room. Pods of equal labels, as those of a workload, are compared once.

That first count is part of a scheduling cycle, and nothing else happens meanwhile. So terms that
would take long, for which a pod needs hundreds of expressions about all pods of a large cluster,
are refused.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from vnode.api.errors import ConfigError
from vnode.api.requirements import Operator, Requirement
from vnode.api.selectors import Selector

KEPT: Final = 256
"""Selectors that pods of one namespace have counted; the one that was asked for longest ago goes,
and is counted anew when needed."""
MOST_COMPARED: Final = 400_000
"""Expressions, and one for each term, times sets of labels: 40 ms for one pod. With 10,000 pods of
which no two have the same labels, thirteen terms of two expressions about all namespaces."""

_Scope: TypeAlias = frozenset[str] | None
"""The namespaces whose pods are counted; None: all."""
_Counted: TypeAlias = tuple[_Scope, Selector]
_EVERYWHERE: Final = ""  # in place of a namespace


@dataclass(slots=True)
class _LabelSet:
    """The placed pods of a namespace that have the same labels."""

    labels: Mapping[str, str]
    nodes: Counter[str] = field(default_factory=Counter)
    """Node -> pods; no zeroes are kept."""
    pods: int = 0


@dataclass(slots=True)
class _Selected:
    """Node -> the pods that a selector matches, exactly as a full count would give."""

    selector: Selector
    nodes: Counter[str]
    askers: set[str]
    """Namespaces that have it counted."""


class SelectorCounts:
    """Counts of selectors, and what they are counted from."""

    def __init__(self) -> None:
        # Namespace -> its sets of labels; none empty.
        self._sets: dict[str, dict[frozenset[tuple[str, str]], _LabelSet]] = {}
        self._total = 0  # of those sets
        self._selected: dict[_Counted, _Selected] = {}
        # Namespace of pods -> what counts them; under _EVERYWHERE what counts all. None empty.
        self._about: dict[str, dict[_Counted, _Selected]] = {}
        # Namespace that asks -> what it has counted, in order of use.
        self._asked: dict[str, OrderedDict[_Counted, None]] = {}

    def count(self, namespace: str, labels: Mapping[str, str], node: str, step: int) -> None:
        """Count a pod that came (1) or went (-1)."""
        self._count_set(namespace, labels, node, step)
        for source in (namespace, _EVERYWHERE):
            for selected in self._about.get(source, {}).values():
                if selected.selector.matches(labels):
                    _step(selected.nodes, node, step)

    def of(self, asker: str, scope: _Scope, selector: Selector) -> Mapping[str, int]:
        """Return node -> pods that match, for a pod of the namespace `asker`. Do not change."""
        key, asked = (scope, selector), self._asked.setdefault(asker, OrderedDict())
        selected = self._selected.get(key)
        if selected is None:
            selected = self._selected[key] = _Selected(selector, self._full(*key), set())
            for namespace in _sources(scope):
                self._about.setdefault(namespace, {})[key] = selected

        asked[key] = None
        asked.move_to_end(key)
        selected.askers.add(asker)
        if len(asked) > KEPT:
            self._drop(asker, asked.popitem(last=False)[0])

        return selected.nodes

    def check(self, asked: Collection[_Counted], field_name: str) -> None:
        """Raise ConfigError if it could take too long to count all of these anew."""
        compared = sum(
            (len(selector.requirements) + 1) * self._count_sets(scope)
            for scope, selector in set(asked)
        )
        if compared > MOST_COMPARED:
            raise ConfigError(
                f"{field_name} has too many expressions about too many pods: use fewer, or name "
                "fewer namespaces"
            )

    def _count_sets(self, scope: _Scope) -> int:
        if scope is None:
            return self._total

        return sum(len(self._sets.get(namespace, ())) for namespace in scope)

    def _count_set(self, namespace: str, labels: Mapping[str, str], node: str, step: int) -> None:
        sets, key = self._sets.setdefault(namespace, {}), frozenset(labels.items())
        found = sets.get(key)
        if found is None:
            found = sets[key] = _LabelSet(labels)
            self._total += 1

        _step(found.nodes, node, step)
        found.pods += step
        if not found.nodes:
            del sets[key]
            self._total -= 1
            if not sets:
                del self._sets[namespace]

    def _full(self, scope: _Scope, selector: Selector) -> Counter[str]:
        spaces = self._sets if scope is None else [n for n in scope if n in self._sets]
        left = [each for namespace in spaces for each in self._sets[namespace].values()]
        for requirement in sorted(selector.requirements, key=_leaves_most):
            left = _narrowed(left, requirement)

        # Most sets of many are of one pod, such as those of Jobs.
        total = Counter(itertools.chain.from_iterable(each.nodes for each in left))
        for several in [each.nodes for each in left if each.pods > len(each.nodes)]:
            for node, pods in several.items():
                total[node] += pods - 1

        return total

    def _drop(self, asker: str, key: _Counted) -> None:
        selected = self._selected[key]
        selected.askers.discard(asker)
        if not selected.askers:
            del self._selected[key]
            for namespace in _sources(key[0]):
                about = self._about[namespace]
                del about[key]
                if not about:
                    del self._about[namespace]


def _sources(scope: _Scope) -> Iterable[str]:
    return (_EVERYWHERE,) if scope is None else scope


def _step(counts: Counter[str], node: str, step: int) -> None:
    counts[node] += step
    if not counts[node]:
        del counts[node]


def _leaves_most(requirement: Requirement) -> bool:
    """Sort what names values before what excludes some: fewer are left for the others."""
    return requirement.operator in (Operator.NOT_IN, Operator.DOES_NOT_EXIST)


def _narrowed(sets: list[_LabelSet], requirement: Requirement) -> list[_LabelSet]:
    """Return those that satisfy the requirement, without a call for each."""
    key, values = requirement.key, requirement.values
    match requirement.operator:
        case Operator.IN:
            return [each for each in sets if each.labels.get(key) in values]
        case Operator.NOT_IN:
            return [each for each in sets if each.labels.get(key) not in values]
        case Operator.EXISTS:
            return [each for each in sets if key in each.labels]
        case Operator.DOES_NOT_EXIST:
            return [each for each in sets if key not in each.labels]
        case _:
            return [each for each in sets if requirement.matches(each.labels)]
