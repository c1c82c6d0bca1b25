"""NetworkPolicies, which follow the pods of their namespace before these are there.

A policy that silently does not hold is worse than a pod that waits: a pod that one selects goes to
a target only once its copy is there, unless the Target says that they are not to follow. A copy is
in a target for as long as there are pods or candidates of its namespace.

To write NetworkPolicies is a strong right: with it, a source may also take away those of the
target itself. So an administrator of the target has to give it, by a role of its own.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

from vnode.api import cures, keys, kinds, objects
from vnode.api.clock import Clock, happens_within
from vnode.api.errors import ConfigError, Denied, Unreachable
from vnode.api.objects import Object
from vnode.following import policy_copies, policy_forms
from vnode.following.family import Family, FamilyContext, Original
from vnode.following.first_pods import NodeNamespace
from vnode.following.pod_index import PodIndex
from vnode.following.policy_forms import PolicyForms
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.following.services import Relabel
from vnode.following.stale_objects import StaleObjects, StaleParts
from vnode.kube.informer import Informer
from vnode.runtime.certs import renewal
from vnode.runtime.link import Link
from vnode.runtime.supervisor import Supervisor

_ANNOUNCED: Final = 60.0  # seconds for an announced candidate to appear
_FIRST_LIST: Final = 5.0  # seconds that a pod waits for policies to be known, once an agent starts
_NAMESPACE: Final = "namespace"


class NetworkPolicies(Family):
    """The family of NetworkPolicies."""

    carried = (kinds.NETWORK_POLICIES,)
    setting = "following.networkPolicies"
    role = "vnode-source-network-policies"
    selects_pods = True

    def __init__(self, context: FamilyContext, *, relabel: Relabel) -> None:
        self._links = context.links
        self._identity = context.identity
        self._wake = context.wake
        self._wake_kind = context.wake_kind
        self._clock: Clock = context.clock
        self._delegates = context.delegates
        self._relabel = relabel
        self._forms = PolicyForms(context.identity)
        self._counts: Counter[str] = Counter()  # policies of each namespace; no zeros
        self._stale = StaleObjects(self._stale_keys, context.wake, context.clock)
        self._pod_index = PodIndex()
        self._chaperons: Counter[NodeNamespace] = Counter()  # ours, in each target; no zeros
        self._announced: dict[NodeNamespace, float] = {}  # until when (monotonic)
        self._originals = Informer(
            context.local,
            kinds.NETWORK_POLICIES,
            trim=policy_forms.trim,
            indexes={_NAMESPACE: lambda policy: (objects.namespace(policy),)},
        )

    @property
    def denial_cure(self) -> str:
        return (
            f"bind ClusterRole {self.role} to this source there, or annotate the Target with "
            f"{keys.NETWORK_POLICIES}=ignore for pods to run there without the NetworkPolicies of "
            "this cluster"
        )

    async def open(self, tasks: Supervisor) -> None:
        """Begin to watch. Pods that a policy may select wait for the list, and nothing else."""
        self._originals.subscribe(self._on_policy)
        self._links.subscribe(self._on_link, self._on_link_gone)
        self._delegates.subscribe(self._wake_all)
        tasks.start(self._stale.run(), "stale-networkpolicies")
        tasks.start(renewal.follow(self._originals, self._on_list), "following networkpolicies")

    def _on_list(self) -> None:
        self._wake_kind(kinds.NETWORK_POLICIES)

    async def selecting(self, pod: Object) -> list[Object]:
        """Return the policies that select a pod; VnodeError while they are not known.

        ConfigError if there are too many to tell.
        """
        if not self._originals.synced.is_set():
            await happens_within(self._originals.answered, _FIRST_LIST)

        if not self._originals.synced.is_set() or self._originals.lacks(objects.namespace(pod)):
            failure, text = (
                self._originals.failure,
                "the NetworkPolicies of this cluster are not known",
            )
            if isinstance(failure, Denied):
                raise ConfigError(
                    f"{text}: {failure.message}; {cures.REPAIR}; or set {self.setting} to false"
                )

            raise Unreachable(f"{text}: {failure or 'they are being read'}")

        return await self._selecting(objects.namespace(pod), objects.labels(pod))

    async def _selecting(self, namespace: str, labels: dict[str, str]) -> list[Object]:
        if self._counts[namespace] > policy_forms.POLICIES:
            raise _too_many(namespace, f"{policy_forms.POLICIES} NetworkPolicies")

        found, weight = [], 0
        for policy in self._in_namespace(namespace):
            if not policy_copies.follows(policy):
                continue

            is_new, form = self._forms.known(policy) is None, self._forms.of(policy)
            weight += form.weight
            if weight > policy_forms.REQUIREMENTS:
                raise _too_many(
                    namespace,
                    f"{policy_forms.REQUIREMENTS} labels and expressions in the podSelectors of "
                    "its NetworkPolicies",
                )

            if form.selects(labels):
                found.append(policy)
                if len(found) > policy_forms.SELECTING:
                    raise _too_many(
                        namespace, f"{policy_forms.SELECTING} NetworkPolicies that select this pod"
                    )

            if is_new:
                await asyncio.sleep(0)

        return found

    async def announce(self, pod: Object, policies: list[Object], link: Link) -> list[Key]:
        """Record that a candidate is about to be created; return the policies that must be there.

        ConfigError if a copy would not select the delegate of the pod.
        """
        kept = objects.annotations(pod).get(keys.NO_PREFIX_LABEL_REGEXP, "")
        own = self._relabel(objects.labels(pod), kept)
        labels = {**own, **self._identity.labels}
        for policy in policies:
            is_new = self._forms.of(policy).delegates is None
            if not self._forms.delegates(policy).matches(labels):
                raise ConfigError(
                    f"networkpolicy/{objects.name(policy)} selects this pod, and would not select "
                    f"it in target {link.target.name}, where annotation "
                    f"{keys.NO_PREFIX_LABEL_REGEXP} has it keep labels: give the NetworkPolicy the "
                    "same annotation"
                )

            if is_new:
                await asyncio.sleep(0)

        there = NodeNamespace(objects.namespace(pod), link.node_name)
        self._announced[there] = self._clock.monotonic() + _ANNOUNCED
        return [Key(link.node_name, _ref(policy)) for policy in policies]

    def _in_namespace(self, namespace: str) -> list[Object]:
        return self._originals.store.by_index(_NAMESPACE, namespace)

    def need(self, key: Key, link: Link) -> Need:
        """Return WANTED where there are pods or candidates of the namespace."""
        if not self._originals.knows(key.ref.namespace):
            return Need.TOLERATED

        policy = self._object(key.ref)
        if policy is None or not (policy_copies.follows(policy) and link.options.network_policies):
            return Need.NONE

        return self._need_in(NodeNamespace(key.ref.namespace, key.node))

    def _need_in(self, there: NodeNamespace) -> Need:
        """Return the need for all policies of a namespace that follow."""
        if self._chaperons[there] or there.node in self._pod_index.nodes(there.namespace):
            return Need.WANTED

        announced = self._announced.get(there, 0.0) > self._clock.monotonic()
        return Need.ANNOUNCED if announced else Need.NONE

    def keys_on(self, node: str) -> Iterator[Key]:
        known = (*self._chaperons, *self._announced)
        found = {there.namespace for there in known if there.node == node}
        found |= {ns for ns in self._pod_index.namespaces() if node in self._pod_index.nodes(ns)}
        for namespace in found:
            for policy in self._in_namespace(namespace):
                yield Key(node, _ref(policy))

    def involved_objects(self, key: Key) -> Iterator[Object]:
        """Yield the policy itself."""
        if policy := self._object(key.ref):
            yield objects.reference(policy, key.ref.kind.kind, key.ref.kind.api_version)

    async def original(self, ref: Ref, link: Link, copy: Object | None) -> Original | None:
        """Return what the informer has; its list is complete."""
        policy = self._object(ref)
        if policy is None:
            return None

        present = policy_copies.selected_labels(copy) if copy is not None else None
        source = self._delegates.labels(ref.namespace, link, present)
        made = self._forms.copy(policy, source)
        version = made.version
        return Original(made.uid, version, version, made.marks, policy, made.body)

    def has_changed(self, ref: Ref) -> bool:
        """Tell whether the copy has to be made anew, which takes longer than to compare it."""
        policy = self._object(ref)
        return policy is not None and self._forms.has_changed(policy)

    async def build(self, _ref: Ref, original: Original, _link: Link) -> Object | None:
        return original.wanted

    def is_up_to_date(self, _ref: Ref, copy: Object, original: Original) -> bool:
        """Tell whether specification and parent are right."""
        ours = objects.labels(copy).get(keys.PARENT_UID) == original.uid
        return ours and self._forms.is_up_to_date(original.body or {}, original.wanted or {}, copy)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Wake the policies of a namespace whose first pod comes to a target, or last one goes."""
        namespace = objects.namespace(objects.latest(old, new))
        for pod in self._pod_index.on_pod(old, new):
            if pod.node and self._pod_index.nodes(namespace)[pod.node] <= 1:
                self._wake_all(NodeNamespace(namespace, pod.node))

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        namespace = objects.namespace(objects.latest(old, new))
        self._counts[namespace] += (new is not None) - (old is not None)
        if new is None:
            self._forms.forget(objects.key(old or {}))
            if not self._counts[namespace]:
                del self._counts[namespace]

        for link in self._links:  # a tenant may change policies all the time: no others are woken
            if self._need_in(NodeNamespace(namespace, link.node_name)) is not Need.NONE:
                self._wake(Key(link.node_name, _ref(objects.latest(old, new))))

    def _on_link(self, link: Link) -> None:
        def on_chaperon(old: Object | None, new: Object | None) -> None:
            there = NodeNamespace(objects.namespace(objects.latest(old, new)), link.node_name)
            self._chaperons[there] += (new is not None) - (old is not None)
            if old is None or new is None:
                self._announced.pop(there, None)
                if self._chaperons[there] <= (new is not None):
                    self._wake_all(there)

            if not self._chaperons[there]:
                del self._chaperons[there]

        self._forget(link.node_name)
        link.chaperons.subscribe(on_chaperon)

    def _on_link_gone(self, link: Link) -> None:
        self._forget(link.node_name)

    def _forget(self, node: str) -> None:
        for known in (self._chaperons, self._announced):
            for there in [there for there in known if there.node == node]:
                del known[there]

    def _wake_all(self, there: NodeNamespace) -> None:
        self._stale.add(there.namespace, (there.node,))

    def _stale_keys(self, namespace: str, parts: StaleParts) -> Iterator[Key]:
        for policy in self._in_namespace(namespace):
            for node in parts.nodes:
                yield Key(node, _ref(policy))

    def _object(self, ref: Ref) -> Object | None:
        return self._originals.store.get(objects.join_key(ref.namespace, ref.name))


def _too_many(namespace: str, bound: str) -> ConfigError:
    return ConfigError(
        f"namespace {namespace} has more than {bound}, and pods of such a namespace go to no "
        "target: replace several by one, or delete those that nobody needs"
    )


def _ref(policy: Object) -> Ref:
    return Ref(kinds.NETWORK_POLICIES, objects.namespace(policy), objects.name(policy))
