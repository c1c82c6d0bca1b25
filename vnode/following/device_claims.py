"""ResourceClaims and ResourceClaimTemplates, which follow the pods that name them.

Of a template, the target makes a claim for each delegate; the source makes one for the proxy, which
stays without devices. A claim that pods name follows itself, without what was allocated for it. The
source's own is never allocated for them: its devices are those of the source.

What would not do is refused before there is a candidate (`admit`): a target without the classes, a
claim that has devices of the source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from vnode.api import device_claims, keys, kinds, objects
from vnode.api.errors import ConfigError, Unreachable
from vnode.api.identity import Identity
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import copies, references
from vnode.following.family import Family, FamilyContext, Original
from vnode.following.reference_index import Key, Need, ReferenceIndex
from vnode.following.references import Ref
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.link import Link
from vnode.runtime.supervisor import Supervisor

_POD_GROUP: Final = "PodGroup"  # a kind
_GROUP: Final = "schedulingGroup"  # a field of pods


class DeviceClaims(Family):
    """The family of claims of devices. Those of the source are watched where pods name some."""

    carried = (kinds.RESOURCE_CLAIM_TEMPLATES, kinds.RESOURCE_CLAIMS)
    setting = "following.configMapsAndSecrets"

    def __init__(self, context: FamilyContext, references: ReferenceIndex) -> None:
        self._local = context.local
        self._links = context.links
        self._identity = context.identity
        self._wake = context.wake
        self._references = references
        self._tasks: KeyedTasks[tuple[Kind, str]] | None = None  # None until `open`
        self._informers: dict[tuple[Kind, str], Informer] = {}  # by kind and namespace

    async def open(self, tasks: Supervisor) -> None:
        self._tasks = tasks.keyed()

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Stop watching a namespace in which no pod refers to anything."""
        namespace = objects.namespace(objects.latest(old, new))
        if self._references.in_namespace(namespace):
            return

        for kind in self.carried:
            if self._informers.pop((kind, namespace), None) and self._tasks is not None:
                self._tasks.stop((kind, namespace))

    def need(self, key: Key, link: Link) -> Need:
        return self._references.need(key, link)

    def keys_on(self, node: str) -> Iterator[Key | None]:
        return self._references.keys_on(node)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        return self._references.involved_objects(key)

    async def admit(self, pod: Object, link: Link, introduced: Collection[Ref]) -> None:
        """Raise VnodeError if the target cannot give the pod the devices that it claims.

        `introduced` is what override policies have the pod refer to, there only.
        """
        for ref in references.of(pod):
            if ref.kind not in self.carried:
                continue

            if ref.kind is kinds.RESOURCE_CLAIMS and ref in introduced:
                raise ConfigError(
                    f"an override policy has the pod name {ref}, which could be used in several "
                    "targets then: have it name a ResourceClaimTemplate"
                )

            if ref.kind is kinds.RESOURCE_CLAIM_TEMPLATES and objects.spec(pod).get(_GROUP):
                await self._refuse_claims_of_groups(pod, ref)

            if (body := await self._body(ref)) is not None:
                _check(ref, body, link)

    async def _refuse_claims_of_groups(self, pod: Object, ref: Ref) -> None:
        """Raise VnodeError if the source has made a claim for the pod's whole group."""
        name = device_claims.generated(pod, ref.name)
        claim = name and await self._body(Ref(kinds.RESOURCE_CLAIMS, ref.namespace, name))
        if not claim:
            raise Unreachable(f"this cluster has made no ResourceClaim of {ref} yet")

        owners = objects.metadata(claim).get("ownerReferences") or ()
        if any(owner.get("kind") == _POD_GROUP for owner in owners):
            raise ConfigError(
                f"ResourceClaim {name} is one of the pod's PodGroup, which does not follow: have "
                "each pod claim devices of its own, by a template that the PodGroup does not name"
            )

    async def original(self, ref: Ref, _link: Link, _copy: Object | None) -> Original | None:
        body = await self._body(ref)
        if body is None:
            return None

        wanted = device_copy(body, self._identity)
        version, uid = objects.resource_version(body), objects.uid(body)
        return Original(uid, version, copies.sent(wanted), copies.marks(wanted), body)

    async def build(self, _ref: Ref, original: Original, _link: Link) -> Object | None:
        return device_copy(original.body, self._identity) if original.body else None

    def is_up_to_date(self, _ref: Ref, copy: Object, original: Original) -> bool:
        """Tell whether the copy was made of the present original, as it is."""
        uid = objects.labels(copy).get(keys.PARENT_UID)
        return copies.sent(copy) == original.digest and uid == original.uid

    def is_equivalent(self, other: Object, original: Original) -> bool:
        """Tell whether the specification is equal."""
        return objects.spec(other) == objects.spec(original.body or {})

    async def _body(self, ref: Ref) -> Object | None:
        """Return an object of the source; None if it does not exist."""
        if self._tasks is not None:
            informer = self._informer(self._tasks, ref.kind, ref.namespace)
            found = informer.store.get(objects.join_key(ref.namespace, ref.name))
            if found is not None and informer.synced.is_set():
                return found

        body = await self.read(self._local, ref)  # it may be new
        return None if body is None else _trim(body)

    def _informer(
        self, tasks: KeyedTasks[tuple[Kind, str]], kind: Kind, namespace: str
    ) -> Informer:
        """Return the informer of a kind in a namespace; start it the first time."""
        if found := self._informers.get((kind, namespace)):
            return found

        informer = Informer(self._local, kind, namespace=namespace, trim=_trim)
        informer.subscribe(lambda old, new: self._on_original(kind, old, new))
        self._informers[kind, namespace] = informer
        tasks.start((kind, namespace), informer.run, f"following {kind.plural} of {namespace}")
        return informer

    def _on_original(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        """Wake the object in every target where it is needed, unless only its status changed."""
        obj = objects.latest(old, new)
        if old and new and _without_status(old) == _without_status(new):
            return

        ref = Ref(kind, objects.namespace(obj), objects.name(obj))
        for link in self._links:
            key = Key(link.node_name, ref)
            if self._references.concerns(key):
                self._wake(key)


def _check(ref: Ref, body: Object, link: Link) -> None:
    """Raise ConfigError if the claim, or one of the template, cannot be met in the target."""
    if ref.kind is kinds.RESOURCE_CLAIMS and (user := device_claims.user(body)):
        raise ConfigError(
            f"{ref} has devices of this cluster (used by {user}): no pod can use them elsewhere. "
            "Name another claim in the pod, or a ResourceClaimTemplate"
        )

    present = link.classes.device_classes
    for name in device_claims.classes(ref.kind, objects.spec(body)):
        if present is not None and name not in present:
            raise ConfigError(f'DeviceClass "{name}" not found: create it in the target')


def device_copy(original: Object, identity: Identity) -> Object:
    """Build the copy of a claim or template: what it asks for, not what it has. Pure."""
    spec = objects.spec(original)
    return {"metadata": copies.metadata(original, identity, spec=spec), "spec": spec}


def _trim(original: Object) -> Object:
    """Return what is kept of an original: not where its devices are, only that it has some."""
    status = objects.status(original)
    kept = {"allocation": bool(status.get("allocation")), "reservedFor": status.get("reservedFor")}
    metadata = {k: v for k, v in objects.metadata(original).items() if k != "managedFields"}
    return {"metadata": metadata, "spec": objects.spec(original), "status": kept}


def _without_status(original: Object) -> Object:
    metadata = {k: v for k, v in objects.metadata(original).items() if k != "resourceVersion"}
    return {"metadata": metadata, "spec": objects.spec(original)}
