"""Guesses whether a new pod fits into a ResourceQuota, before an API server decides. Pure.

A quota limits sums over the pods that its scopes select: of requests, of limits, or their number.
Its status has what is used. Amounts are in nano-units, so that nothing is rounded.

It is a guess, since the API server counts what admission there has made of the pod: policies and
webhooks may set requests, limits, a class or a deadline. They cannot make it no pod, so the number
of pods is certain where a quota counts all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from vnode.api import (
    keys,
    limit_ranges,
    objects,
    quantities,
    resources,
    saved_manifest,
    selectors,
)
from vnode.api.errors import ConfigError
from vnode.api.limit_ranges import LimitRange, Nanos
from vnode.api.objects import Object, Objects
from vnode.api.priorities import BY_NAME, NAME, PriorityMapping
from vnode.api.resources import CPU, LIMITS, MEMORY, PODS, REQUESTS
from vnode.api.selectors import Selector

_COUNT: Final = "count/pods"
_STORAGE: Final = "ephemeral-storage"
_COMPUTE: Final = (CPU, MEMORY, _STORAGE)
_HUGE_PAGES: Final = "hugepages-"
_REQUESTS: Final = "requests."
_LIMITS: Final = "limits."
_OF_PODS: Final = frozenset(
    (_COUNT, PODS, *(prefix + name for prefix in ("", _REQUESTS, _LIMITS) for name in _COMPUTE))
)
_MOST_NAMED: Final = 20
"""Containers that are named of those that lack something."""
_MOST_WORK: Final = 5_000
"""Amounts of LimitRanges times containers; of a pod with more they are left to the target."""
_ONE_POD: Final[Nanos] = {_COUNT: quantities.NANO, PODS: quantities.NANO}
_PRIORITY_CLASS: Final = "PriorityClass"


@dataclass(frozen=True)
class QuotaUsage:
    """What a new pod counts for, with the defaults of its namespace's LimitRanges.

    What quotas ask of all its containers, or of its manifest, is found once: there may be dozens.
    """

    pod: Object
    """The proxy."""
    spec: Object
    amounts: Nanos
    violations: tuple[str, ...] = ()
    """What LimitRanges have against it."""

    @property
    def is_terminating(self) -> bool:
        """Whether it ends by itself at a deadline."""
        deadline = self.spec.get("activeDeadlineSeconds")
        return deadline is not None and deadline >= 0

    @cached_property
    def is_best_effort(self) -> bool:
        """Whether none of its containers requests or limits CPU or memory."""
        listed = [(c.get("resources") or {}) for c in (self.spec, *_containers(self.spec))]
        return not any(
            quantities.nano(amount)
            for given in listed
            for field_ in (REQUESTS, LIMITS)
            for name, amount in (given.get(field_) or {}).items()
            if name in (CPU, MEMORY)
        )

    @cached_property
    def lacking(self) -> dict[str, str]:
        """By the name of what a quota may make mandatory, the containers that lack it."""
        return _lacking(self.spec)

    @cached_property
    def crosses_namespaces(self) -> bool:
        """Whether the delegate's pod affinity is about pods of named namespaces."""
        affinity = _sent_affinity(self.pod)
        terms = (
            wish.get("podAffinityTerm") or wish
            for which in ("podAffinity", "podAntiAffinity")
            for listed in (affinity.get(which) or {}).values()
            for wish in listed or ()
        )
        return any(t.get("namespaces") or t.get("namespaceSelector") is not None for t in terms)


@dataclass(frozen=True, slots=True)
class Scope:
    """One condition on the pods that a quota counts."""

    name: str
    selector: Selector = field(default_factory=Selector)
    """Of PriorityClass alone: selects the name of a pod's class."""

    def matches(self, usage: QuotaUsage) -> bool:
        """Tell whether the scope selects a pod; those of other objects, or unknown, select none."""
        match self.name:
            case "Terminating":
                return usage.is_terminating
            case "NotTerminating":
                return not usage.is_terminating
            case "BestEffort":
                return usage.is_best_effort
            case "NotBestEffort":
                return not usage.is_best_effort
            case "CrossNamespacePodAffinity":
                return usage.crosses_namespaces
            case "PriorityClass":
                class_ = usage.spec.get(NAME)
                return self.selector.matches({_PRIORITY_CLASS: class_} if class_ else {})

        return False


@dataclass(frozen=True, slots=True)
class Quota:
    """A ResourceQuota, as far as it is about pods."""

    name: str
    hard: Nanos
    used: Nanos
    scopes: frozenset[Scope]

    def matches(self, usage: QuotaUsage) -> bool:
        """Tell whether the pod counts in this quota."""
        return bool(self.hard) and all(scope.matches(usage) for scope in self.scopes)

    def refusal(self, usage: QuotaUsage, promised: Nanos) -> str:
        """Return what a pod that matches seems to lack, as it is; "" for nothing.

        `promised` is counted as used: pods on their way there.
        """
        if missing := sorted(self.hard.keys() & usage.lacking.keys()):
            listed = "; ".join(f"{name} for: {usage.lacking[name]}" for name in missing)
            return f"ResourceQuota {self.name} makes mandatory: {listed}"

        return self._exceeded(usage.amounts, promised)

    def certain_refusal(self, promised: Nanos) -> str:
        """Return why there is no room for any pod, whatever admission makes of it; else ""."""
        return "" if self.scopes else self._exceeded(_ONE_POD, promised)

    def _exceeded(self, amounts: Nanos, promised: Nanos) -> str:
        used = {name: self.used.get(name, 0) + promised.get(name, 0) for name in self.hard}
        exceeded = [
            name
            for name, amount in amounts.items()
            if amount and name in used and used[name] + amount > self.hard[name]
        ]

        def text(name: str) -> str:
            wanted, taken, limit = (
                resources.format_nano(name, of.get(name, 0)) for of in (amounts, used, self.hard)
            )
            return f"{name} {wanted}, and {taken} of {limit} are used"

        listed = "; ".join(map(text, sorted(exceeded)))
        return f"no room in ResourceQuota {self.name} for {listed}" if listed else ""

    def is_about_the_same(self, before: Quota) -> bool:
        """Tell whether it limits as it did; what is used may differ."""
        return (self.scopes, self.hard) == (before.scopes, before.hard)

    def has_more_than(self, before: Quota) -> bool:
        """Tell whether a pod may fit that did not fit into the quota as it was before."""
        if self.scopes != before.scopes or before.hard.keys() - self.hard.keys():
            return True

        return any(
            hard - self.used.get(name, 0) > before.hard[name] - before.used.get(name, 0)
            for name, hard in self.hard.items()
            if name in before.hard
        )


def parse(obj: Object) -> Quota:
    """Read a ResourceQuota. ConfigError for a quantity or a scope that cannot be read.

    What the API server there goes by is the status; a quota that has none yet is taken at its word.
    """
    spec, status = objects.spec(obj), objects.status(obj)
    hard = _nanos(status.get("hard") or spec.get("hard"))
    expressions = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    names = ({"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ())
    return Quota(
        objects.name(obj),
        {name: amount for name, amount in hard.items() if _is_about_pods(name)},
        _nanos(status.get("used")),
        frozenset(map(_scope, (*names, *expressions))),
    )


def usage_of(
    pod: Object, ranges: Iterable[LimitRange], priorities: PriorityMapping = BY_NAME
) -> QuotaUsage:
    """Return what a proxy's delegate counts for, with the class that it has in its target.

    Raises ConfigError for a quantity that cannot be read.
    """
    ranges = tuple(ranges)
    if sum(each.size for each in ranges) * len(_containers(objects.spec(pod))) > _MOST_WORK:
        ranges = ()

    spec = limit_ranges.apply_defaults(objects.spec(pod), ranges)
    if (name := priorities.choose(spec).name) != (spec.get(NAME) or ""):
        spec = {**spec, NAME: name}

    requests, limits = resources.in_nano(spec, REQUESTS), resources.in_nano(spec, LIMITS)
    violations = [f"LimitRange {r.name}: {text}" for r in ranges for text in r.violations(spec)]
    return QuotaUsage(pod, spec, {**_ONE_POD, **_charged(requests, limits)}, tuple(violations))


def _charged(requests: Nanos, limits: Nanos) -> dict[str, int]:
    """Return the amounts by the names that quotas have for them."""
    charged = {_LIMITS + name: amount for name, amount in limits.items() if name in _COMPUTE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(_HUGE_PAGES):
            charged[name] = charged[_REQUESTS + name] = amount
        elif resources.is_extended(name):
            charged[_REQUESTS + name] = amount

    return charged


def _is_about_pods(name: str) -> bool:
    bare = name.removeprefix(_REQUESTS)
    return (
        name in _OF_PODS
        or bare.startswith(_HUGE_PAGES)
        or (name.startswith(_REQUESTS) and resources.is_extended(name))
    )


def _lacking(spec: Object) -> dict[str, str]:
    """Name the containers that lack what quotas make mandatory, by what that is.

    Nothing is, once the pod as a whole has any request or limit.
    """
    if any((spec.get("resources") or {}).get(field_) for field_ in (REQUESTS, LIMITS)):
        return {}

    found: dict[str, str] = {}
    for field_, bare in itertools.product((REQUESTS, LIMITS), (CPU, MEMORY)):
        without = sorted(
            str(container.get("name"))
            for container in _containers(spec)
            if bare not in ((container.get("resources") or {}).get(field_) or {})
        )
        if without:
            more = f" and {len(without) - _MOST_NAMED} more" if without[_MOST_NAMED:] else ""
            names = (bare, _REQUESTS + bare) if field_ == REQUESTS else (_LIMITS + bare,)
            found |= dict.fromkeys(names, ",".join(without[:_MOST_NAMED]) + more)

    return found


def _containers(spec: Object) -> Objects:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _sent_affinity(pod: Object) -> Object:
    """Return the affinity of a proxy's delegate; the webhook has saved it."""
    affinity = objects.spec(pod).get("affinity")
    text = objects.annotations(pod).get(keys.SOURCE_POD_MANIFEST)
    if text is not None:
        try:
            affinity = saved_manifest.read(text)[1].get("affinity")
        except ConfigError:
            affinity = None  # no delegate is made of it

    return affinity or {}


def _scope(expression: Object) -> Scope:
    name = str(expression.get("scopeName"))
    if name != _PRIORITY_CLASS:
        return Scope(name)

    selector = selectors.from_label_selector(
        {"matchExpressions": [{**expression, "key": _PRIORITY_CLASS}]}
    )
    return Scope(name, selector or Selector())


def _nanos(listed: Mapping[str, Any] | None) -> dict[str, int]:
    return {name: quantities.nano(amount) for name, amount in (listed or {}).items()}
