"""Services and Ingresses, which follow the pods behind them.

A Service follows if it selects a proxy pod. It goes to the targets where pods of its namespace are
bound: those that it selects, and those that may call it by its name. An Ingress goes where one of
its backend Services goes; whenever it is reconciled, so are the Secrets that it names (`tls`). Only
the first pods of a namespace in a target wait for its Services (`first_pods`).

Global ones, and those of global namespaces (`global_objects`), go to all targets of their
namespace, with pods there or without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import copies, exposure, global_objects, packed_specs, services
from vnode.following.family import Family, FamilyContext, Original
from vnode.following.first_pods import NodeNamespace
from vnode.following.global_objects import GlobalObjects
from vnode.following.pod_index import PodIndex
from vnode.following.reference_index import Key, Need
from vnode.following.references import Ref
from vnode.following.services import Relabel
from vnode.following.stale_objects import StaleObjects, StaleParts
from vnode.following.write_back import WriteBackController
from vnode.kube.informer import Informer
from vnode.kube.store import Store
from vnode.runtime.link import Link
from vnode.runtime.supervisor import Supervisor

_NAMESPACE: Final = "namespace"
_CERTIFICATE: Final = "certificate"
_WITH_CERTIFICATES: Final = "with certificates"
_TRIMS: Final = {kinds.SERVICES: services.trim_service, kinds.INGRESSES: services.trim_ingress}


class NetworkObjects(Family):
    """The family of Services and Ingresses.

    `active` is False where they do not follow: then only Admiralty's changes to them are undone.
    """

    carried = (kinds.SERVICES, kinds.INGRESSES)
    setting = "following.services"
    selects_pods = True

    def __init__(
        self,
        context: FamilyContext,
        *,
        relabel: Relabel,
        target_exists: Callable[[str], bool],
        active: bool,
        is_global: Callable[[str], bool] = lambda _namespace: False,
    ) -> None:
        self.active = active
        self._links = context.links
        self._identity = context.identity
        self._wake = context.wake
        self._copies_of = context.copies_of
        self._delegates = context.delegates
        self._relabel = relabel
        self._pod_index = PodIndex()
        self._write_back = WriteBackController(
            context.local,
            original=self._object,
            follows=self._follows,
            copies_of=context.copies_of,
            target_exists=target_exists,
            active=active,
            clock=context.clock,
        )
        self._originals = {
            kind: Informer(
                context.local,
                kind,
                trim=_TRIMS[kind],
                indexes={
                    _NAMESPACE: _namespace,
                    _CERTIFICATE: _certificates,
                    _WITH_CERTIFICATES: _namespace_with_certificates,
                    global_objects.INDEX: global_objects.index,
                },
            )
            for kind in self.carried
        }
        stores = {kind: each.store for kind, each in self._originals.items()}
        self._global = GlobalObjects(stores, is_global)
        self._stale = StaleObjects(self._stale_keys, self._wake, context.clock)

    async def open(self, tasks: Supervisor) -> None:
        """Begin to watch; all originals are known when it returns."""
        for kind, informer in self._originals.items():
            tasks.start(informer.run(), f"following {kind.plural}")
            await informer.synced.wait()

        for kind, informer in self._originals.items():
            informer.subscribe(partial(self._on_original, kind))

        self._links.subscribe(lambda _link: None, self._on_link_gone)
        self._delegates.subscribe(
            lambda there: self._stale.add(there.namespace, (there.node,), services=True)
        )
        tasks.start(self._write_back.run(), "services-controller")
        tasks.start(self._stale.run(), "stale-services")

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Wake the objects that a pod's change moves to other targets, or away from them."""
        namespace = objects.namespace(objects.latest(old, new))
        for pod in self._pod_index.on_pod(old, new):
            nodes = self._pod_index.nodes(namespace)
            if pod.node and nodes[pod.node] <= 1:  # the first on that node, or it was the last
                self._stale.add(namespace, (pod.node,), services=True)

            others = self._covering(namespace) if self._global.has_whole(namespace) else ()
            self._stale.add(namespace, {*nodes, *others, pod.node} - {""}, pod=pod)

    def _covering(self, namespace: str) -> Iterator[str]:
        return (link.node_name for link in self._links.covering(namespace))

    def _wake_all(self, kind: Kind, obj: Object, nodes: Iterable[str]) -> None:
        refs = _refs(kind, obj)
        for node in nodes:
            for ref in refs:
                self._wake(Key(node, ref))

    def _stale_keys(self, namespace: str, parts: StaleParts) -> Iterator[Key | None]:
        """Yield the Services that are stale, and Ingresses with the Secrets that they name."""
        if parts.services or parts.pods:
            for obj in self._originals[kinds.SERVICES].store.by_index(_NAMESPACE, namespace):
                yield None
                ref = Ref(kinds.SERVICES, namespace, objects.name(obj))
                for node in parts.nodes_of(services.selector(obj)):
                    yield Key(node, ref)

        for obj in self._ingresses.by_index(_NAMESPACE, namespace):
            for ref in _refs(kinds.INGRESSES, obj):
                for node in parts.nodes:
                    yield Key(node, ref)

    def need(self, key: Key, _link: Link | None = None) -> Need:
        """Return WANTED where pods of the namespace are bound, if proxy pods are behind it.

        A global one is wanted everywhere, as are all of a global namespace.
        """
        namespace = key.ref.namespace
        if not self._knows(namespace):
            return Need.TOLERATED

        obj = self._object(key.ref)
        everywhere = obj is not None and self._global.reaches_all(key.ref.kind, obj)
        here = everywhere or key.node in self._pod_index.nodes(namespace)
        return Need.WANTED if here and self._follows(key.ref) else Need.NONE

    def need_of_certificates(self, key: Key, link: Link) -> Need:
        """Return the need for the Secrets of an Ingress: none are made for one that is refused."""
        need, obj = self.need(key, link), self._object(key.ref)
        if need is not Need.WANTED or obj is None or not self._refusal(obj, link):
            return need

        return need if self._copies_of(key.ref).get(key.node) else Need.TOLERATED

    def cost_of_need(self, ingress: Object, need: Need) -> int:
        """Return how much that need of an Ingress has taken to find, in parts of it and targets."""
        parts = 1 + len(list(services.backends(ingress))) + len(objects.annotations(ingress))
        return parts + (len(self._links) if need is Need.TOLERATED else 0)  # all were asked

    @property
    def known(self) -> bool:
        """Whether all originals are known."""
        return all(informer.synced.is_set() for informer in self._originals.values())

    def _knows(self, namespace: str) -> bool:
        return all(informer.knows(namespace) for informer in self._originals.values())

    def ingresses_with(self, certificate: Ref) -> list[Object]:
        """Return the Ingresses that name that Secret for TLS."""
        key = objects.join_key(certificate.namespace, certificate.name)
        is_secret = certificate.kind is kinds.SECRETS
        return self._ingresses.by_index(_CERTIFICATE, key) if is_secret else []

    def may_name(self, certificate: Key) -> bool:
        """Tell whether an Ingress that may be in that target names that Secret for TLS."""
        namespace, name = certificate.ref.namespace, certificate.ref.name
        here = certificate.node in self._pod_index.nodes(namespace)
        if certificate.ref.kind is not kinds.SECRETS or not (
            here or self._global.may_have_some(namespace)
        ):
            return False

        return self._ingresses.has(_CERTIFICATE, objects.join_key(namespace, name))

    def ingresses_on(self, node: str) -> Iterator[Object | None]:
        """Yield the Ingresses that may be wanted in one target; None for all else."""
        for key in self.keys_on(node):
            is_one = key is not None and key.ref.kind is kinds.INGRESSES
            yield self._object(key.ref) if key is not None and is_one else None

    def has_certificates(self, namespace: str) -> bool:
        """Tell whether a namespace has an Ingress that names a Secret, and may be in a target."""
        goes = self._pod_index.nodes(namespace) or self._global.may_have_some(namespace)
        return bool(goes) and self._ingresses.has(_WITH_CERTIFICATES, namespace)

    @property
    def _ingresses(self) -> Store:
        return self._originals[kinds.INGRESSES].store

    def _follows(self, ref: Ref) -> bool:
        obj = self._object(ref)
        if obj is None or objects.is_terminating(obj):
            return False

        if self._global.includes(ref.kind, obj):
            return True

        if ref.kind is kinds.INGRESSES:
            return any(
                self._follows(Ref(kinds.SERVICES, ref.namespace, name))
                for name in services.backends(obj)
            )

        return self._pod_index.has(ref.namespace, services.selector(obj))

    def keys_on(self, node: str) -> Iterator[Key | None]:
        """Yield what may be wanted there, of namespaces with pods there and of global ones.

        Whether pods are behind it is looked at when each has its turn: tenants have thousands.
        """
        for namespace in {*self._pod_index.namespaces(), *self._global.namespaces()}:
            for kind, informer in self._originals.items():
                for obj in informer.store.by_index(_NAMESPACE, namespace):
                    key = Key(node, Ref(kind, namespace, objects.name(obj)))
                    has_pods = node in self._pod_index.nodes(namespace)
                    yield key if has_pods or self._global.reaches_all(kind, obj) else None

    def services_in(self, there: NodeNamespace) -> Iterator[Key | None]:
        """Yield the Services that are to be there, None for others; originals must be known."""
        for obj in self._originals[kinds.SERVICES].store.by_index(_NAMESPACE, there.namespace):
            key = Key(there.node, Ref(kinds.SERVICES, there.namespace, objects.name(obj)))
            yield key if self.need(key) is Need.WANTED else None

    def has_pods(self, there: NodeNamespace) -> bool:
        """Tell whether pods of a namespace are bound to a virtual node."""
        return there.node in self._pod_index.nodes(there.namespace)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        """Yield the Service or Ingress itself."""
        if obj := self._object(key.ref):
            yield objects.reference(obj, key.ref.kind.kind, key.ref.kind.api_version)

    async def original(self, ref: Ref, link: Link, copy: Object | None) -> Original | None:
        """Return what the informer has; its list is complete. ConfigError if it is too large."""
        obj = self._object(ref)
        if obj is None:
            return None

        obj = packed_specs.unpack(obj)
        uid, version, options = objects.uid(obj), objects.resource_version(obj), link.options
        remark = refusal = ""
        if ref.kind is kinds.SERVICES:
            present = objects.spec(copy).get("selector") or {} if copy is not None else None
            source = self._delegates.labels(ref.namespace, link, present)
            wanted = services.service(obj, self._identity, self._relabel, options, copy, source)
            remark = exposure.service_remark(obj, options, copy)
        else:
            wanted = services.ingress(obj, self._identity, options, copy)
            refusal, remark = self._refusal(obj, link), services.ingress_remark(obj)

        marks = copies.marks(wanted)
        return Original(uid, version, version, marks, obj, wanted, remark, refusal)

    def _refusal(self, ingress: Object, link: Link) -> str:
        if problem := packed_specs.problem(ingress):
            return problem

        namespace = objects.namespace(ingress)
        found = (
            self._object(Ref(kinds.SERVICES, namespace, name))
            for name in services.backends(ingress)
        )
        return exposure.ingress_refusal(ingress, filter(None, found), link.options)

    async def build(self, _ref: Ref, original: Original, _link: Link) -> Object | None:
        return original.wanted

    def update(self, body: Object, copy: Object) -> Object | None:
        """Keep what the target has chosen: an API server fills in much only when an object is
        created."""
        if services.is_headless(body) != services.is_headless(copy):
            return None  # an API server keeps the address silently, or the lack of one

        wanted = self.relaxed(body) or body
        spec = {**copies.added(copy), **objects.spec(wanted)}
        return copies.successor({**wanted, "spec": spec}, copy)

    def relaxed(self, body: Object) -> Object | None:
        """Leave the node ports to the target."""
        return services.without_node_ports(body)

    def trim(self, copy: Object) -> Object:
        """Keep specification and addresses."""
        return services.trim(copy)

    def is_up_to_date(self, _ref: Ref, copy: Object, original: Original) -> bool:
        """Tell whether specification and parent are right."""
        ours = objects.labels(copy).get(keys.PARENT_UID) == original.uid
        return ours and services.is_up_to_date(copy, original.wanted or {})

    def on_reconciled(self, key: Key) -> None:
        """Write back addresses, which may have changed."""
        self._write_back.wake(key.ref)

    def _object(self, ref: Ref) -> Object | None:
        key = objects.join_key(ref.namespace, ref.name)
        return self._originals[ref.kind].store.get(key)

    def _on_original(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        obj = objects.latest(old, new)
        namespace = objects.namespace(obj)
        self._write_back.wake(Ref(kind, namespace, objects.name(obj)))
        states = list(filter(None, (old, new)))  # which may name different Secrets
        nodes = set(self._pod_index.nodes(namespace))
        if any(self._global.reaches_all(kind, state) for state in states):
            nodes.update(self._covering(namespace))

        for state in states:
            self._wake_all(kind, state, nodes)

        if kind is kinds.SERVICES:
            self._stale.add(namespace, nodes)

    def _on_link_gone(self, _link: Link) -> None:
        """Reconcile objects with addresses of targets: those of this one may have to go."""
        for kind, informer in self._originals.items():
            for obj in informer.store.values():
                if keys.ADDRESSES in objects.annotations(obj):
                    self._write_back.wake(Ref(kind, objects.namespace(obj), objects.name(obj)))


def _namespace(obj: Object) -> Iterable[str]:
    yield objects.namespace(obj)


def _namespace_with_certificates(obj: Object) -> Iterable[str]:
    if any(services.certificates(obj)):
        yield objects.namespace(obj)


def _certificates(obj: Object) -> Iterable[str]:
    return {objects.join_key(ref.namespace, ref.name) for ref in services.certificates(obj)}


def _refs(kind: Kind, obj: Object) -> set[Ref]:
    """Return an object, and the Secrets that it names if it is an Ingress."""
    own = Ref(kind, objects.namespace(obj), objects.name(obj))
    return {own, *services.certificates(obj)} if kind is kinds.INGRESSES else {own}
