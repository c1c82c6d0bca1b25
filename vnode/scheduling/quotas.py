"""Knows the quotas and limits of targets' namespaces, and what of them is promised.

A target reports what its quotas have used as soon as a delegate is created there, but the scheduler
places hundreds of pods before. So each pod on its way to a target counts in its quotas until the
target has answered about its candidate: then the delegate is in the target's own sum, or was
refused. Until then a pod may count twice, and others wait for a moment. A promise needs no end by
time: it ends at the latest with the pod's attempt.

Only the number of pods is certain. Of all else the target is asked, since admission there may make
the pod fit, by one pod for all that are like it (`quota_answers`).

What a target says is bounded: of a namespace with more quotas the rest is left to its API server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from vnode.api import objects
from vnode.api.limit_ranges import LimitRange, Nanos
from vnode.api.objects import Object
from vnode.api.priorities import BY_NAME, PriorityMapping
from vnode.api.resource_quotas import Quota
from vnode.api.unfinished import UnfinishedWork
from vnode.scheduling.known_usages import KnownUsages
from vnode.scheduling.quota_rules import NamespaceRules

_NOTHING: Final[Mapping[str, Nanos]] = MappingProxyType({})


class Quotas:
    """Keeps quotas by node and namespace; empty while no target has any, or lets us read them."""

    def __init__(self) -> None:
        self.generation = 0  # differs after each change of what `refusals` returns
        self._rules: dict[tuple[str, str], NamespaceRules] = {}  # by node and namespace; none empty
        self._priorities: dict[str, PriorityMapping] = {}  # by node
        self._namespaces: Counter[str] = Counter()  # of `_rules`
        # Pods on their way: by node, namespace and UID. None are empty.
        self._promised: dict[str, dict[str, dict[str, Object]]] = {}
        self._namespace_of: dict[tuple[str, str], str] = {}  # by node and UID, of those
        self._known = KnownUsages()
        self.recounting = UnfinishedWork()
        """Thousands of promised pods that are counted by other limits: what they lack is a guess,
        and until that is over it is one by what they counted for before."""

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

    def refusals(self, pod: Object, node: str, now: float, *, asks: bool = True) -> tuple[str, ...]:
        """Return why the target takes no pod now, or refused one like it; empty if it may take it.

        `now` is in monotonic seconds, as in all that follows. Without `asks` nobody will find out
        that it does not: pods that it took a moment ago count, though its sum may have them, too.
        """
        rules = self._rules.get((node, objects.namespace(pod)))
        return rules.refusals(pod, now, asks=asks) if rules else ()

    def lack(
        self, pods: Sequence[tuple[Object, int]], node: str, taken: Mapping[str, Nanos] = _NOTHING
    ) -> str:
        """Return what so many pods of one namespace seem to lack together; "" for nothing.

        `taken` is what others take, by quota.
        """
        rules = self._rules.get((node, objects.namespace(pods[0][0]))) if pods else None
        return rules.lack(pods, taken) if rules else ""

    def demand(self, pod: Object, count: int, node: str) -> dict[str, Nanos]:
        """Return what so many pods would take of each quota of their namespace."""
        rules = self._rules.get((node, objects.namespace(pod)))
        return rules.demand(pod, count) if rules else {}

    def waits(self, pod: Object, node: str, now: float, *, asks: bool) -> str:
        """Return what the pod seems to lack, if it has to wait until it may be asked for; else "".

        Without `asks` it has to as long as no pod like it was taken: nobody is to ask.
        """
        rules = self._rules.get((node, objects.namespace(pod)))
        return rules.waits(pod, now, asks=asks) if rules else ""

    def is_outdated(self, pod: Object, node: str) -> bool:
        """Tell whether a pod that was refused there seems to fit by now."""
        rules = self._rules.get((node, objects.namespace(pod)))
        return rules is None or rules.is_outdated(pod)

    def answer(self, pod: Object, node: str, refusal: str | None) -> bool:
        """Note whether the target has taken a pod, or why its quotas or limits did not (`refusal`).

        Call it before `settle`. Return whether that is news to other pods.
        """
        rules = self._rules.get((node, objects.namespace(pod)))
        news = rules is not None and rules.answer(pod, refusal)
        self.generation += news
        return news

    def leave(self, uid: str, namespace: str, node: str, now: float) -> None:
        """Note that the candidate of a pod of that namespace in that target is gone."""
        rules = self._rules.get((node, namespace))
        if rules is not None and rules.answers.leave(uid, now):
            self.generation += 1

    def forget_answers(self) -> None:
        """Forget what targets have answered, since other pods are sent now."""
        self.generation += 1
        for rules in self._rules.values():
            rules.answers.forget()

    def promise(self, pod: Object, node: str) -> None:
        """Count a pod that is on its way to the target."""
        uid, namespace = objects.uid(pod), objects.namespace(pod)
        self._promised.setdefault(node, {}).setdefault(namespace, {})[uid] = pod
        self._namespace_of[node, uid] = namespace
        if rules := self._rules.get((node, namespace)):
            rules.settle(uid)
            rules.promise(pod)
            self.generation += 1

    def settle(self, uid: str, node: str, taken: float | None = None) -> bool:
        """Stop counting a pod: the target counts it, `taken` at that moment, or has it not.

        Return whether another pod may fit for that.
        """
        namespace = self._namespace_of.pop((node, uid), None)
        if namespace is None:
            return False

        there = self._promised[node]
        del there[namespace][uid]
        if not there[namespace]:
            del there[namespace]

        if not there:
            del self._promised[node]

        rules = self._rules.get((node, namespace))
        if rules is None:
            return False

        rules.settle(uid, taken)
        self.generation += 1
        return True

    def _rules_for(self, node: str, namespace: str) -> NamespaceRules:
        if (rules := self._rules.get((node, namespace))) is not None:
            return rules

        def promised() -> Mapping[str, Object]:
            return self._promised.get(node, {}).get(namespace, {})

        def priorities() -> PriorityMapping:
            return self._priorities.get(node, BY_NAME)

        return NamespaceRules(promised, priorities, self._known, self._recount)

    def _recount(self, steps: Iterator[None]) -> None:
        def noted() -> Iterator[None]:
            for _ in steps:
                self.generation += 1
                yield

        self.recounting.begin(noted())

    def _changed(self, node: str, namespace: str, rules: NamespaceRules) -> None:
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
