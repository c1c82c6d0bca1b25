"""Finds the policy of a pod, at a cost that does not grow with the number of policies. No I/O.

A pod names its policy by a label, or policies select it. One of its namespace comes before all that
are cluster-wide, then the highest priority, then the first by name. A label that names none in
force, or one that pods may not name, is as if it were not there.

Policies are found by a label that they want, not tried one after the other. What was found for a
set of labels of a namespace is kept, and is compared with what has changed since, policy by policy:
pods of one workload have the same labels, and selectors may be costly.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.api.requirements import Operator
from vnode.api.selectors import Selector
from vnode.planning.policy import Policy

KEPT: Final = 200_000
"""Labels, and one for each set of them, in one scope for which the policy is kept; all go when
there would be more. They stay when their pods go, some hundred bytes each."""

_Label: TypeAlias = tuple[str, str]
_Labels: TypeAlias = tuple[_Label, ...]
_Kind: TypeAlias = tuple[str, _Labels]
"""Namespace and labels: whatever pods have in common that have the same policy."""


class PolicyIndex:
    """The policies that are in force, by the pods that they are for."""

    def __init__(self, policies: Iterable[Policy] = ()) -> None:
        self._scopes: dict[
            str, _PolicyScope
        ] = {}  # by namespace, "" for cluster-wide ones; none empty
        for policy in policies:
            self.set(policy)

    def set(self, policy: Policy) -> None:
        """Add a policy, or replace the one of its name."""
        self._scopes.setdefault(policy.namespace, _PolicyScope()).set(policy)

    def remove(self, policy: Policy) -> None:
        """Remove a policy."""
        scope = self._scopes.get(policy.namespace)
        if scope is not None:
            scope.remove(policy.name)
            if not scope.policies:
                del self._scopes[policy.namespace]

    def groupings(self, namespace: str) -> frozenset[str]:
        """Return what policies for pods of a namespace group by, "" for their owners."""
        scopes = (self._scopes.get(each) for each in {namespace, ""})
        return frozenset(by for scope in scopes if scope for by in scope.groupings)

    def of(self, pod: Object) -> Policy | None:
        """Return the policy of a pod, None if there is none for it."""
        namespace, labels = objects.namespace(pod), objects.labels(pod)
        local, wide = self._scopes.get(namespace), self._scopes.get("")
        for scope, kind, key in (
            (local, "placementpolicy", keys.PLACEMENT_POLICY),
            (wide, "clusterplacementpolicy", keys.CLUSTER_PLACEMENT_POLICY),
        ):
            name = labels.get(key)
            policy = scope.policies.get(f"{kind}/{name}") if name and scope else None
            if policy is not None and policy.may_be_named(namespace):
                return policy

        found = local.first(namespace, labels) if local else None
        return wide.first(namespace, labels) if found is None and wide else found


@dataclass(slots=True)
class _Found:
    """The policy that some labels have, as of a change of the scope."""

    policy: Policy | None
    number: int


class _PolicyScope:
    """The policies of a namespace, or those that are cluster-wide."""

    def __init__(self) -> None:
        self.policies: dict[str, Policy] = {}
        """By their names."""
        self.groupings: Counter[str] = Counter()
        """How many group by a label, or by "", their owners; no zeros."""
        # Those that want a label of that value, and the others under None; by rank, none empty.
        self._groups: dict[_Label | None, list[Policy]] = {}
        self._number = 0  # of the last change
        self._changes: dict[str, int] = {}  # by name of a policy: its last change, in their order
        self._found: dict[_Kind, _Found] = {}
        self._kept = 0  # labels in there, and one for each set of them

    def set(self, policy: Policy) -> None:
        """Add a policy, or replace the one of its name."""
        self._take_out(policy.name)
        self.policies[policy.name] = policy
        self.groupings[policy.group_by] += 1
        if policy.selector is not None:
            group = self._groups.setdefault(_wanted_label(policy.selector), [])
            bisect.insort(group, policy, key=_rank)

        self._note(policy.name)

    def remove(self, name: str) -> None:
        """Remove a policy."""
        self._take_out(name)
        self.policies.pop(name, None)
        self._note(name)

    def first(self, namespace: str, labels: Mapping[str, str]) -> Policy | None:
        """Return the policy of the highest rank that selects pods with these labels."""
        key = namespace, tuple(sorted(labels.items()))
        found = self._found.get(key)
        if found is None:
            found = _Found(self._best(namespace, labels), self._number)
            self._keep(key, found)
        elif found.number != self._number:
            found.policy = self._after_changes(found, namespace, labels)
            found.number = self._number

        return found.policy

    def _keep(self, key: _Kind, found: _Found) -> None:
        size = 1 + len(key[1])
        if self._kept + size > KEPT:
            self._forget_found()

        self._found[key] = found
        self._kept += size

    def _forget_found(self) -> None:
        self._found.clear()
        self._kept = 0

    def _after_changes(
        self, found: _Found, namespace: str, labels: Mapping[str, str]
    ) -> Policy | None:
        """Return the policy of some labels now, by what has changed since it was found."""
        best = found.policy
        for name in reversed(self._changes):
            if self._changes[name] <= found.number:
                break

            policy, was_best = self.policies.get(name), best is not None and best.name == name
            selects = policy is not None and policy.selects(namespace, labels)
            if was_best and not (selects and policy and best and _rank(policy) <= _rank(best)):
                return self._best(namespace, labels)  # others may come before it now

            if selects and policy and (best is None or _rank(policy) <= _rank(best)):
                best = policy

        return best

    def _best(self, namespace: str, labels: Mapping[str, str]) -> Policy | None:
        best: Policy | None = None
        for group in self._wanting(labels):
            for policy in group:
                if best is not None and _rank(best) < _rank(policy):
                    break

                if policy.selects(namespace, labels):
                    best = policy
                    break

        return best

    def _wanting(self, labels: Mapping[str, str]) -> Iterator[list[Policy]]:
        for wanted in (None, *labels.items()):
            if (group := self._groups.get(wanted)) is not None:
                yield group

    def _take_out(self, name: str) -> None:
        """Take a policy out of its group, if there is one of that name, and out of the counts."""
        policy = self.policies.get(name)
        if policy is None:
            return

        self.groupings[policy.group_by] -= 1
        if not self.groupings[policy.group_by]:
            del self.groupings[policy.group_by]

        if policy.selector is None:
            return

        wanted = _wanted_label(policy.selector)
        group = self._groups[wanted]
        del group[bisect.bisect_left(group, _rank(policy), key=_rank)]
        if not group:
            del self._groups[wanted]

    def _note(self, name: str) -> None:
        self._number += 1
        self._changes.pop(name, None)  # so that the last change comes last
        self._changes[name] = self._number
        if len(self._changes) > 2 * len(self.policies) + 16:  # most are of policies that are gone
            self._changes.clear()
            self._forget_found()


def _rank(policy: Policy) -> tuple[int, str]:
    """Sort the policy that comes first before the others."""
    return -policy.priority, policy.name


def _wanted_label(selector: Selector) -> _Label | None:
    """Return a label without which nothing is selected, None if there is none."""
    for requirement in selector.requirements:
        if requirement.operator is Operator.IN and len(requirement.values) == 1:
            (value,) = requirement.values
            return requirement.key, value

    return None
