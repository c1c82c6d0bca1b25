"""Finds the policy of a pod. Pure.

A pod names its policy by a label, or policies select it. One of its namespace comes before all that
are cluster-wide, then the highest priority, then the first by name. A label that names none in
force is as if it were not there. The scheduler asks for each pod that it sees, so policies are
found by a label that they want, not tried one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.selectors import Operator, Selector
from vnode.planning.policy import Policy

_Ranked: TypeAlias = tuple[int, Policy, Selector]
_Label: TypeAlias = tuple[str, str]


class PolicyIndex:
    """Policies, by the pods that they are for."""

    def __init__(self, policies: Iterable[Policy]) -> None:
        ranked = sorted(policies, key=lambda policy: (-policy.priority, policy.name))
        self._by_name = {(p.namespace, p.name.partition("/")[2]): p for p in ranked}
        by_namespace: dict[str, list[Policy]] = {}
        for policy in ranked:
            by_namespace.setdefault(policy.namespace, []).append(policy)

        self._scopes = {
            space: _RankedPolicies(of_space) for space, of_space in by_namespace.items()
        }

    def of(self, pod: Object) -> Policy | None:
        """Return the policy of a pod, None if there is none for it."""
        namespace, labels = objects.namespace(pod), objects.labels(pod)
        for home, key in ((namespace, keys.PLACEMENT_POLICY), ("", keys.CLUSTER_PLACEMENT_POLICY)):
            if (name := labels.get(key)) and (policy := self._by_name.get((home, name))):
                return policy

        for home in (namespace, ""):
            scope = self._scopes.get(home)
            if scope is not None and (policy := scope.first(labels)):
                return policy

        return None


class _RankedPolicies:
    """The policies of a namespace, or those that are cluster-wide."""

    def __init__(self, ranked: Iterable[Policy]) -> None:
        # Those that want a label of that value, and the others; both ordered by rank.
        self._by_label: dict[_Label, list[_Ranked]] = {}
        self._others: list[_Ranked] = []
        for rank, policy in enumerate(ranked):
            if policy.selector is not None:
                wanted = _wanted_label(policy.selector)
                group = self._others if wanted is None else self._by_label.setdefault(wanted, [])
                group.append((rank, policy, policy.selector))

    def first(self, labels: Mapping[str, str]) -> Policy | None:
        """Return the policy of the highest rank that selects these labels."""
        best: tuple[int, Policy] | None = None
        for group in self._groups(labels):
            for rank, policy, selector in group:
                if best is not None and best[0] < rank:
                    break

                if selector.matches(labels):
                    best = rank, policy
                    break

        return None if best is None else best[1]

    def _groups(self, labels: Mapping[str, str]) -> Iterator[list[_Ranked]]:
        yield self._others
        if self._by_label:
            for label in labels.items():
                if (group := self._by_label.get(label)) is not None:
                    yield group


def _wanted_label(selector: Selector) -> _Label | None:
    """Return a label without which nothing is selected, None if there is none."""
    for requirement in selector.requirements:
        if requirement.operator is Operator.IN and len(requirement.values) == 1:
            (value,) = requirement.values
            return requirement.key, value

    return None
