"""Reads override policies: an object in, an `OverridePolicy` out, whatever is wrong with it. Pure.

A rule that cannot be used does not make the others useless, nor is it dropped: the pods that it is
meant for would run without what their administrator asked for. It stays as a rule that refuses the
targets that it is for, or all of them if that cannot be read either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from vnode.api import kinds, objects, pod_shape
from vnode.api.errors import ConfigError
from vnode.api.kinds import Kind
from vnode.api.label_selector import LabelSelector
from vnode.api.objects import Object
from vnode.api.selectors import Selector
from vnode.api.target_key import TargetKey
from vnode.overrides import checking
from vnode.overrides.rules import (
    MOST_RULES,
    ClusterSelection,
    OverrideRule,
    PolicyHead,
)

_EVERYTHING: Final = Selector()
_Form = TypeVar("_Form")

_SHOWN: Final = 300  # characters of a problem, which may name a field of any length
_CURE: Final = "fields that only a newer vnode knows need a newer agent"


@dataclass(frozen=True, slots=True)
class RuleTargets:
    """The targets that a rule is for; None stands for all."""

    names: frozenset[str] | None = None
    selector: Selector | None = None

    def has(self, target: TargetKey, labels: Mapping[str, str]) -> bool:
        """Tell whether a target is one of them, given the labels of its virtual node."""
        known = (target.name, str(target), target.node_name)
        if self.names is not None and not self.names.intersection(known):
            return False

        return self.selector is None or self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule, by its place in the policy; without a rule it has a problem."""

    index: int
    clusters: RuleTargets
    rule: OverrideRule | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OverridePolicy:
    """A policy as it counts for pods; `problem` is that of the whole, "" if there is none."""

    key: str
    priority: int
    selector: Selector
    rules: tuple[PolicyRule, ...]
    namespaces: frozenset[str] | None = None
    """Of a ClusterOverridePolicy: those whose pods it is for; None: all of them."""

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether it is for pods with these labels of a namespace that sees the policy.

        Labels alone are the choice of whoever makes the pod.
        """
        if self.namespaces is not None and namespace not in self.namespaces:
            return False

        return self.selector.matches(labels)

    @property
    def name(self) -> str:
        """What users call it: `overridepolicy/team-a/mirror`."""
        return name_of(self.key)

    @property
    def problem(self) -> str:
        """Why it is not accepted, "" if it is."""
        return "; ".join(rule.problem for rule in self.rules if rule.problem)

    @property
    def order(self) -> tuple[bool, int, str]:
        """Sorts the policies of a pod: those of the cluster first, then by priority and name."""
        return "/" in self.key, self.priority, self.key


def kind_of(key: str) -> Kind:
    """Return the kind of a policy, by its key."""
    return kinds.scoped(kinds.OVERRIDE_POLICIES, objects.split_key(key)[0])


def name_of(key: str) -> str:
    """Return a policy's name with its kind, as kubectl writes it."""
    return f"{kind_of(key).kind.lower()}/{key}"


def parse(obj: Object) -> OverridePolicy:
    """Read a policy. One whose selector cannot be read refuses every pod: it may be meant."""
    key = objects.key(obj)
    try:
        head = _convert(objects.spec(obj), PolicyHead, "spec")
        selector = head.selector.compiled("spec.selector")
        _check_namespaces(head, key)
        if len(head.rules) > MOST_RULES:
            raise ConfigError(f"spec.rules has over {MOST_RULES} rules: write another policy")
    except ConfigError as error:
        refusing = PolicyRule(0, RuleTargets(), None, str(error))
        return OverridePolicy(
            key, 0, _readable_selector(obj), (refusing,), _readable_namespaces(obj)
        )

    rules = tuple(_rule(index, raw) for index, raw in enumerate(head.rules))
    namespaces = None if head.namespaces is None else frozenset(head.namespaces)
    return OverridePolicy(key, head.priority, selector, rules, namespaces)


def _check_namespaces(head: PolicyHead, key: str) -> None:
    """Raise ConfigError if a policy says wrongly whose pods it is for."""
    if head.namespaces is None:
        return

    if "/" in key:
        raise ConfigError("spec.namespaces is for ClusterOverridePolicies: leave it out")

    if not head.namespaces:
        raise ConfigError("spec.namespaces is empty: leave it out for pods of all namespaces")


def _rule(index: int, raw: Any) -> PolicyRule:
    where = f"spec.rules[{index}]"
    clusters = RuleTargets()
    try:
        clusters = _clusters(raw, f"{where}.clusters")
        rule = _convert(raw, OverrideRule, where)
    except ConfigError as error:
        return PolicyRule(index, clusters, None, str(error))

    try:
        checking.check(rule)
    except ConfigError as error:
        return PolicyRule(index, clusters, None, f"{where}: {error}")

    return PolicyRule(index, clusters, rule)


def _clusters(raw: Any, where: str) -> RuleTargets:
    given = raw.get("clusters") if isinstance(raw, dict) else None
    if given is None:
        return RuleTargets()

    chosen = _convert(given, ClusterSelection, where)
    names = None if chosen.names is None else frozenset(chosen.names)
    if names is not None and not names:
        raise ConfigError(f"{where}.names is empty: leave it out for all targets")

    selector = chosen.selector
    compiled = None if selector is None else selector.compiled(f"{where}.selector")
    return RuleTargets(names, compiled)


def _readable_selector(obj: Object) -> Selector:
    """Return the selector of a policy whose head is wrong; everything, if that is what is wrong."""
    spec: Any = objects.spec(obj)
    given = spec.get("selector") if isinstance(spec, dict) else None
    try:
        return _convert(given, LabelSelector, "spec.selector").compiled("spec.selector")
    except ConfigError:
        return _EVERYTHING


def _readable_namespaces(obj: Object) -> frozenset[str] | None:
    """Return the namespaces of a policy whose head is wrong; None, if that is what is wrong."""
    spec: Any = objects.spec(obj)
    is_wide = isinstance(spec, dict) and not objects.namespace(obj)
    given = spec.get("namespaces") if is_wide else None
    try:
        return frozenset(_convert(given, list[str], "spec.namespaces")) or None
    except ConfigError:
        return None


def _convert(value: Any, form: type[_Form], where: str) -> _Form:
    if (why := pod_shape.problem_of(value, form)) is not None:
        cure = f" ({_CURE})" if "unknown field" in why else ""
        field, colon, _ = why.partition(": ")
        inside = "." if colon and " " not in field else ": "
        raise ConfigError(f"{where}{inside}{why[:_SHOWN]}{cure}")

    return msgspec.convert(value, form)
