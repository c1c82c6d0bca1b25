"""Chooses the rules of override policies for a pod in a target, and applies them.

Policies are kept as the informers show them, decoded once. For a pod that is to be sent, those that
select it are gone through in order: the cluster's own first, then those of its namespace, each by
priority and name, so that the last word is that of the namespace's highest priority. Without
policies that costs a look into an empty dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from vnode.api import documents, kinds, objects
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.overrides import applying, policy, record
from vnode.overrides.failures import Failures
from vnode.overrides.policy import OverridePolicy, PolicyRule
from vnode.overrides.record import Owner, RecordedRule, Reference, Seal
from vnode.overrides.rules import OverrideRule
from vnode.runtime.link import Link

_TOO_MUCH: Final = (
    f"it takes more than {applying.MOST_WORK} bytes in all to go through the pod for each entry of "
    "its rules: have fewer entries, or a smaller pod"
)

References = Callable[[Object], Iterable[Reference]]
"""Finds what a pod refers to in its namespace."""


class RuleOverride:
    """The rules for one pod in one target, in order."""

    def __init__(
        self,
        pod: Object,
        link: Link,
        rules: tuple[RecordedRule, ...],
        *,
        seal: Seal,
        references: References,
        failures: Failures | None,
    ) -> None:
        self._pod = pod
        self._link = link
        self.rules = rules
        self._seal = seal
        self._references = references
        self._failures = failures  # None: failures say nothing of the present policies

    def apply(self, pod: Object) -> Object:
        """Return what the rules make of a pod; ConfigError names the policy and the rule.

        Before each rule it is counted what that would take: a pod may have a MiB, rules may be
        hundreds, and each may make it larger.
        """
        try:
            changed = applying.clone(pod)
        except documents.NO_JSON as error:
            raise ConfigError("the pod is nested too deeply for override policies") from error

        work = 0
        for each in self.rules:
            try:
                work += applying.work(changed, each.rule)
                if work > applying.MOST_WORK:
                    raise ConfigError(_TOO_MUCH)

                applying.apply(changed, each.rule)
            except ConfigError as error:
                self._fail(each, str(error))
                raise ConfigError(
                    f"{policy.name_of(each.policy)}, rules[{each.index}]: {error}"
                ) from error

        if self._failures is not None:
            self._failures.clear(self._pod, self._link.node_name)

        return changed

    def _fail(self, rule: RecordedRule, why: str) -> None:
        if self._failures is not None:
            message = (
                f"pod/{objects.key(self._pod)} is not sent to target {self._link.target}: "
                f"rules[{rule.index}]: {why}"
            )
            self._failures.add(rule.policy, self._pod, self._link.node_name, message)

    def record(self, before: Object, after: Object) -> dict[str, str]:
        """Return the annotations by which a chaperon remembers the rules, and what they introduce.

        ConfigError if they are too long.
        """
        owner = _owner(self._pod, self._link)
        space = {"namespace": owner.namespace}
        own, wanted = (
            set(self._references({"metadata": space, "spec": pod["spec"]}))
            for pod in (before, after)
        )
        return self._seal.annotations(owner, record.encode(self.rules, wanted - own))


class PolicyOverrides:
    """Knows all override policies of the cluster.

    `labels` returns the labels of a virtual node, None if there is none of that name; `key` the
    agents' key. `failures` has what went wrong with pods.
    """

    def __init__(
        self,
        client: Client,
        *,
        labels: Callable[[str], Mapping[str, str] | None],
        references: References,
        key: Callable[[], bytes],
    ) -> None:
        self.informers = (
            Informer(client, kinds.CLUSTER_OVERRIDE_POLICIES),
            Informer(client, kinds.OVERRIDE_POLICIES),
        )
        self.failures = Failures()
        self._labels = labels
        self._references = references
        self._seal = Seal(key)
        self._policies: dict[str, dict[str, OverridePolicy]] = {}  # by namespace, then key
        self._ordered: dict[str, tuple[OverridePolicy, ...]] = {}  # by namespace of pods; a cache
        self._changed: Listeners[str] = Listeners()
        for informer in self.informers:
            informer.subscribe(self._on_policy)

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of each policy whose spec has changed, or that is gone."""
        self._changed.add(changed)

    def get(self, key: str) -> OverridePolicy | None:
        """Return the policy of a key."""
        return self._policies.get(objects.split_key(key)[0], {}).get(key)

    def lookup(self, key: str) -> Object | None:
        """Return the object of a policy."""
        return self.informers["/" in key].store.get(key)

    def choose(self, pod: Object, link: Link) -> RuleOverride | None:
        """Return what the policies want of a pod in a target, None for nothing.

        ConfigError if a rule that concerns it cannot be used, Unreachable before the policies are
        known. Where the API server has no such kinds, or does not let the agent see them, there are
        none.
        """
        for informer in self.informers:
            if not informer.answered.is_set() or informer.lacks(objects.namespace(pod)):
                raise Unreachable("the override policies of this cluster are not known yet")

        if not self._policies:
            return None

        namespace, labels, chosen = objects.namespace(pod), objects.labels(pod), []
        for found in self._of_namespace(namespace):
            if found.selects(namespace, labels):
                chosen += [RecordedRule(found.key, *each) for each in self._rules(found, pod, link)]

        if not chosen:
            return None

        record.encode(chosen)  # its limit holds before anything is done
        return self._override(pod, link, tuple(chosen), self.failures)

    def recorded(self, pod: Object, chaperon: Object, link: Link) -> RuleOverride | None:
        """Return by what the chaperon of a pod was made.

        ConfigError if there is a record and it is not ours.
        """
        annotations = objects.annotations(chaperon)
        if not any(key in annotations for key in record.KEYS):
            return None

        text = self._seal.believed(_owner(pod, link), annotations)
        if text is None:
            raise ConfigError(
                f"target {link.target} does not get it: the rules of override policies that its "
                "chaperon was made by were lost or forged there; delete the pod, for its owner to "
                "replace it"
            )

        return self._override(pod, link, record.decode(text)[0], None)

    def introduced(self, pod: Object, chaperon: Object, link: Link) -> Iterable[Reference]:
        """Return what a pod's delegate refers to because of overrides, as far as that is sure."""
        annotations = objects.annotations(chaperon)
        if not any(key in annotations for key in record.KEYS):
            return ()

        text = self._seal.believed(_owner(pod, link), annotations)
        try:
            return record.decode(text)[1] if text else ()
        except ConfigError:
            return ()

    def _override(
        self,
        pod: Object,
        link: Link,
        rules: tuple[RecordedRule, ...],
        failures: Failures | None,
    ) -> RuleOverride:
        return RuleOverride(
            pod, link, rules, seal=self._seal, references=self._references, failures=failures
        )

    def _rules(
        self, found: OverridePolicy, pod: Object, link: Link
    ) -> Iterable[tuple[int, OverrideRule]]:
        """Yield the rules of a policy for a target; ConfigError if one cannot be used."""
        for each in found.rules:
            if not self._concerns(each, link):
                continue

            if each.rule is None:
                raise ConfigError(
                    f"{found.name} is not accepted, and pods that it selects are not sent there "
                    f"without it: {each.problem}"
                )

            yield each.index, each.rule

    def _concerns(self, rule: PolicyRule, link: Link) -> bool:
        labels: Mapping[str, str] | None = {}
        if rule.clusters.selector is not None:
            labels = self._labels(link.node_name)
            if labels is None:
                raise Unreachable(f"virtual node {link.node_name} is not known yet")

        return rule.clusters.has(link.target, labels or {})

    def _of_namespace(self, namespace: str) -> tuple[OverridePolicy, ...]:
        found = self._ordered.get(namespace)
        if found is None:
            both = (self._policies.get(space, {}).values() for space in ("", namespace))
            ordered = sorted((p for part in both for p in part), key=lambda each: each.order)
            found = self._ordered[namespace] = tuple(ordered)

        return found

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if old and new and objects.spec(old) == objects.spec(new):
            return  # a status that we have written

        key = objects.key(objects.latest(old, new))
        namespace = objects.split_key(key)[0]
        if new is not None:
            self._policies.setdefault(namespace, {})[key] = policy.parse(new)
        else:
            self._policies.get(namespace, {}).pop(key, None)
            if not self._policies.get(namespace, {"": None}):
                del self._policies[namespace]

        self._ordered.clear()
        self.failures.forget(key)
        self._changed.call(key)


def _owner(pod: Object, link: Link) -> Owner:
    namespace, name = objects.namespace(pod), objects.name(pod)
    return Owner(namespace, name, objects.uid(pod), str(link.target))
