"""Counts the placed pods that selectors match, by virtual node.

A selector is counted once when it is first asked for, and from then on with every pod that comes or
goes. What is counted for the pods of one namespace, others cannot push out: each namespace has the
same room, and little of it for selectors about pods of others, who pay for these with each pod that
they place. A selector that nobody asks for goes once it has been kept up to date for longer than it
takes to count it anew. Pods of equal labels, as those of a workload, are compared once for a count.

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
"""Selectors about its own pods that a namespace has counted; the one that was asked for longest ago
goes, and is counted anew when needed."""
KEPT_ABROAD: Final = 64
"""Likewise, selectors about pods of other namespaces."""
EXPRESSIONS: Final = 2_000
"""Expressions of either of these, and one for each selector; the last one stays whatever it has."""
IDLE: Final = 1_000
"""Pods that come or go before a selector is dropped for which nobody asks; as many as there were
sets of labels that it was counted from, if these are more."""
MOST_COMPARED: Final = 400_000
"""Expressions, and one for each term, times sets of labels: 40 ms for one pod. With 10,000 pods of
which no two have the same labels, thirteen terms of two expressions about all namespaces."""
COMPARED_LABELS: Final = 1_000
"""Labels of a pod that are compared with those of others: 0.3 ms. A pod may have 30,000, whose
comparison takes 25 to 65 ms; each such pod counts by itself."""

_Scope: TypeAlias = frozenset[str] | None
"""The namespaces whose pods are counted; None: all."""
_Counted: TypeAlias = tuple[_Scope, Selector]
_Key: TypeAlias = frozenset[tuple[str, str]] | int
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
    due: int
    """The number of pods to be compared, as of which it goes if nobody asks."""

    @property
    def cost(self) -> int:
        """What it takes of the expressions of a namespace."""
        return len(self.selector.requirements) + 1


def _key(labels: Mapping[str, str]) -> _Key:
    """Return what equal labels have in common; of very many it is not found out if others are."""
    return frozenset(labels.items()) if len(labels) <= COMPARED_LABELS else id(labels)


class _AskedSelectors:
    """What a namespace has counted, of its own pods or of others', in order of use."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[_Counted, _Selected] = OrderedDict()
        self._cost = 0  # of those

    def __len__(self) -> int:
        return len(self._kept)

    def use(self, key: _Counted, selected: _Selected) -> None:
        """Note that the namespace asks for one."""
        if key not in self._kept:
            self._kept[key] = selected
            self._cost += selected.cost

        self._kept.move_to_end(key)

    def surplus(self) -> _Counted | None:
        """Return the one that was used longest ago, if there are too many."""
        if len(self) > self._most or (self._cost > EXPRESSIONS and len(self) > 1):
            return next(iter(self._kept))

        return None

    def drop(self, key: _Counted) -> None:
        """Forget one."""
        self._cost -= self._kept.pop(key).cost


class SelectorCounts:
    """Counts of selectors, and what they are counted from."""

    def __init__(self) -> None:
        # Namespace -> its sets of labels; none empty.
        self._sets: dict[str, dict[_Key, _LabelSet]] = {}
        self._total = 0  # of those sets
        self._selected: dict[_Counted, _Selected] = {}
        # Namespace of pods -> what counts them; under _EVERYWHERE what counts all. None empty.
        self._about: dict[str, dict[_Counted, _Selected]] = {}
        # By the namespace that asks, and whether that is about others; none empty.
        self._asked: dict[tuple[str, bool], _AskedSelectors] = {}
        self._compared = 0  # pods that came or went

    def count(self, namespace: str, labels: Mapping[str, str], node: str, step: int) -> None:
        """Count a pod that came (1) or went (-1), with the very labels that it came with."""
        self._count_set(namespace, labels, node, step)
        self._compared += 1
        idle = list[_Counted]()
        for source in (namespace, _EVERYWHERE):
            for key, selected in self._about.get(source, {}).items():
                if selected.selector.matches(labels):
                    _step(selected.nodes, node, step)

                if self._compared >= selected.due:
                    idle.append(key)

        for key in idle:
            for asker in list(self._selected[key].askers):
                self._drop(asker, key)

    def of(self, asker: str, scope: _Scope, selector: Selector) -> Mapping[str, int]:
        """Return node -> pods that match, for a pod of the namespace `asker`. Do not change."""
        key = scope, selector
        selected = self._selected.get(key)
        if selected is None:
            selected = self._selected[key] = _Selected(selector, self._full(*key), set(), 0)
            for namespace in _sources(scope):
                self._about.setdefault(namespace, {})[key] = selected

        selected.askers.add(asker)
        selected.due = self._compared + max(IDLE, self._count_sets(scope))
        is_abroad = _is_abroad(asker, scope)
        asked = self._asked.get((asker, is_abroad))
        if asked is None:
            most = KEPT_ABROAD if is_abroad else KEPT
            asked = self._asked[asker, is_abroad] = _AskedSelectors(most)

        asked.use(key, selected)
        while (surplus := asked.surplus()) is not None:
            self._drop(asker, surplus)

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
        sets, key = self._sets.setdefault(namespace, {}), _key(labels)
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
        selected, whose = self._selected[key], (asker, _is_abroad(asker, key[0]))
        self._asked[whose].drop(key)
        if not self._asked[whose]:
            del self._asked[whose]

        selected.askers.discard(asker)
        if not selected.askers:
            del self._selected[key]
            for namespace in _sources(key[0]):
                about = self._about[namespace]
                del about[key]
                if not about:
                    del self._about[namespace]


def _is_abroad(asker: str, scope: _Scope) -> bool:
    """Tell whether pods of others are counted for a namespace."""
    return scope is None or scope != {asker}


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
