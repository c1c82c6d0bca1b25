"""Knows the quotas and limits of targets' namespaces, and what of them is promised.

A target reports what its quotas have used as soon as a delegate is created there, but the scheduler
places hundreds of pods before. So each pod on its way to a target counts in its quotas until the
target has answered about its candidate: then the delegate is in the target's own sum, or was
refused. Until then a pod may count twice, and others wait for a moment. A promise needs no end by
time: it ends at the latest with the pod's attempt.

What a target says is bounded: of a namespace with more quotas the rest is left to its API server.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import limit_ranges, objects, resource_quotas, resources
from vnode.api.errors import ConfigError
from vnode.api.limit_ranges import LimitRange
from vnode.api.objects import Object
from vnode.api.priorities import BY_NAME, PriorityMapping
from vnode.api.resource_quotas import Quota, QuotaUsage

MOST: Final = 50
"""Quotas, and LimitRanges, that are read of one namespace."""

log = logging.getLogger(__name__)


class Quotas:
    """Keeps quotas by node and namespace; empty while no target has any, or lets us read them."""

    def __init__(self) -> None:
        self.generation = 0  # differs after each change of what `refusals` returns
        self._rules: dict[tuple[str, str], _Rules] = {}  # by node and namespace; none empty
        self._priorities: dict[str, PriorityMapping] = {}  # by node
        self._namespaces: Counter[str] = Counter()  # of `_rules`
        self._promised: dict[str, dict[str, Object]] = {}  # by node and UID: pods on their way

    def set_quota(self, node: str, namespace: str, name: str, quota: Quota | None) -> bool:
        """Set a quota of a target's namespace, None for one that is gone.

        Return whether a pod may fit that did not fit before.
        """
        rules = self._rules_for(node, namespace)
        before = rules.quotas.get(name)
        rules.set_quota(name, quota)
        self._changed(node, namespace, rules)
        return before is not None and (quota is None or quota.has_more_than(before))

    def set_limit_range(
        self, node: str, namespace: str, name: str, limit_range: LimitRange | None
    ) -> None:
        """Set a LimitRange of a target's namespace, None for one that is gone."""
        rules = self._rules_for(node, namespace)
        rules.set_limit_range(name, limit_range)
        self._changed(node, namespace, rules)

    def set_priorities(self, node: str, priorities: PriorityMapping) -> None:
        """Set which classes pods have in a target, for pods that come from now on."""
        if self._priorities.get(node, BY_NAME) != priorities:
            self._priorities[node] = priorities
            self.generation += 1

    def remove_node(self, node: str) -> None:
        """Forget the quotas of a target that is gone; its pods stay promised."""
        self._priorities.pop(node, None)
        for key in [key for key in self._rules if key[0] == node]:
            del self._rules[key]
            self._count(key[1], -1)
            self.generation += 1

    def concerns(self, namespace: str) -> bool:
        """Tell whether any target has a quota or a limit for pods of that namespace."""
        return namespace in self._namespaces

    def refusals(self, pod: Object, node: str) -> tuple[str, ...]:
        """Return why the target's API server would refuse the pod now; empty if it would not."""
        rules = self._rules.get((node, objects.namespace(pod)))
        return rules.refusals(pod) if rules else ()

    def promise(self, pod: Object, node: str) -> None:
        """Count a pod that is on its way to the target."""
        uid = objects.uid(pod)
        self._promised.setdefault(node, {})[uid] = pod
        if rules := self._rules.get((node, objects.namespace(pod))):
            rules.settle(uid)
            rules.promise(pod)
            self.generation += 1

    def settle(self, uid: str, node: str) -> bool:
        """Stop counting a pod: the target counts it, or it does not go there.

        Return whether another pod may fit for that.
        """
        promised = self._promised.get(node, {})
        pod = promised.pop(uid, None)
        if pod is None:
            return False

        if not promised:
            del self._promised[node]

        rules = self._rules.get((node, objects.namespace(pod)))
        if rules is None:
            return False

        rules.settle(uid)
        self.generation += 1
        return True

    def _rules_for(self, node: str, namespace: str) -> _Rules:
        if (rules := self._rules.get((node, namespace))) is not None:
            return rules

        pods = self._promised.get(node, {}).values()
        there = [pod for pod in pods if objects.namespace(pod) == namespace]
        return _Rules(there, lambda: self._priorities.get(node, BY_NAME))

    def _changed(self, node: str, namespace: str, rules: _Rules) -> None:
        self.generation += 1
        there = (node, namespace) in self._rules
        if rules.is_empty and there:
            del self._rules[node, namespace]
            self._count(namespace, -1)
        elif not rules.is_empty and not there:
            self._rules[node, namespace] = rules
            self._count(namespace, 1)

    def _count(self, namespace: str, change: int) -> None:
        self._namespaces[namespace] += change
        if not self._namespaces[namespace]:
            del self._namespaces[namespace]


class _Rules:
    """The quotas and limits of one namespace of one target."""

    def __init__(
        self, promised: Iterable[Object], priorities: Callable[[], PriorityMapping]
    ) -> None:
        self._priorities = priorities
        self.quotas: dict[str, Quota] = {}
        self._ranges: dict[str, LimitRange] = {}
        self._usages: dict[str, QuotaUsage] = {}  # of promised pods, by UID
        # By quota: the sum over those of them that it counts.
        self._sums: dict[str, dict[str, int]] = {}
        for pod in promised:
            self.promise(pod)

    @property
    def is_empty(self) -> bool:
        return not self.quotas and not self._ranges

    def set_quota(self, name: str, quota: Quota | None) -> None:
        before = self.quotas.pop(name, None)
        if quota is None:
            self._sums.pop(name, None)
        elif before is not None or len(self.quotas) < MOST:
            self.quotas[name] = quota
            if before is None or before.scopes != quota.scopes or before.hard != quota.hard:
                self._sum(quota)

    def set_limit_range(self, name: str, limit_range: LimitRange | None) -> None:
        before = self._ranges.pop(name, None)
        if limit_range is not None and (before is not None or len(self._ranges) < MOST):
            self._ranges[name] = limit_range

        pods = [usage.pod for usage in self._usages.values()]
        self._usages.clear()
        for pod in pods:
            self.promise(pod, add=False)

        for quota in self.quotas.values():
            self._sum(quota)

    def refusals(self, pod: Object) -> tuple[str, ...]:
        uid, wanted = objects.uid(pod), self._usage(pod)
        if wanted.violations or not self.quotas:
            return wanted.violations

        own = self._usages.get(uid)
        found = []
        for quota in (self.quotas[name] for name in sorted(self.quotas)):
            if not quota.matches(wanted):
                continue

            promised = self._sums[quota.name]
            if own is not None and quota.matches(own):
                promised = resources.subtract(promised, own.amounts)

            if refusal := quota.refusal(wanted, promised):
                found.append(refusal)

        return tuple(found)

    def promise(self, pod: Object, *, add: bool = True) -> None:
        try:
            usage = self._usages[objects.uid(pod)] = self._usage(pod)
        except ConfigError as error:
            log.info("%s counts in no quota: %s", objects.key(pod), error)
            return

        if add:
            for quota in self.quotas.values():
                if quota.matches(usage):
                    self._sums[quota.name] = resources.add(self._sums[quota.name], usage.amounts)

    def settle(self, uid: str) -> None:
        usage = self._usages.pop(uid, None)
        if usage is not None:
            for quota in self.quotas.values():
                if quota.matches(usage):
                    self._sums[quota.name] = resources.subtract(
                        self._sums[quota.name], usage.amounts
                    )

    def _usage(self, pod: Object) -> QuotaUsage:
        ranges = limit_ranges.in_order(self._ranges)
        return resource_quotas.usage_of(pod, ranges, self._priorities())

    def _sum(self, quota: Quota) -> None:
        total: dict[str, int] = {}
        for usage in self._usages.values():
            if quota.matches(usage):
                total = resources.add(total, usage.amounts)

        self._sums[quota.name] = total
