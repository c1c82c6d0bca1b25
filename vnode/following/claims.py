"""PersistentVolumeClaims, which follow pods to targets whose Target asks for it.

Only the claim follows: the target provisions a volume of its own, and the data stays in the source.
So a copy is removed only when its original has been deleted, not because no pod uses it just now;
and of a copy only labels and annotations are updated, since little of a claim may change.

A claim that was deleted and created again may find the copy of its predecessor, which pods may have
written to. That copy is left and used, and the pods get an Event that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from vnode.api import keys, kinds, objects, storage
from vnode.api.errors import NotFound
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.following import copies
from vnode.following.family import Family, FamilyContext, Original
from vnode.following.reference_index import Key, Need, ReferenceIndex
from vnode.following.references import Ref
from vnode.kube.informer import Informer
from vnode.runtime.certs import renewal
from vnode.runtime.link import Link
from vnode.runtime.supervisor import Supervisor

_COPIED: Final = ("accessModes", "resources", "volumeMode")
_MARKS: Final = "marks"  # a field of the originals in the store


class Claims(Family):
    """The family of claims. Those of the source are watched once some Target asks for them."""

    carried = (kinds.CLAIMS,)
    setting = "following.configMapsAndSecrets"
    keeps_copies = True

    def __init__(self, context: FamilyContext, references: ReferenceIndex) -> None:
        self._local = context.local
        self._links = context.links
        self._identity = context.identity
        self._wake = context.wake
        self._wake_kind = context.wake_kind
        self._copies_of = context.copies_of
        self._references = references
        self._informer = Informer(self._local, kinds.CLAIMS, metadata_only=True, trim=self._trim)
        self._running = False

    async def open(self, tasks: Supervisor) -> None:
        """Begin as soon as a Target asks for claims."""

        def on_link(link: Link) -> None:
            if self.serves(link) and not self._running:
                self._running = True
                self._informer.subscribe(self._on_claim)
                tasks.start(renewal.follow(self._informer, self._on_list), "following claims")

        self._links.subscribe(on_link, lambda _link: None)

    def _on_list(self) -> None:
        self._wake_kind(kinds.CLAIMS)

    def serves(self, link: Link) -> bool:
        """Tell whether the Target says which storage classes to use."""
        return link.options.storage_classes is not None

    def need(self, key: Key, link: Link) -> Need:
        """Return the need of pods; without any, TOLERATED until the original is deleted."""
        need = self._references.need(key, link)
        if need is not Need.NONE:
            return need

        known = self._informer.store.get(objects.join_key(key.ref.namespace, key.ref.name))
        gone = self._informer.knows(key.ref.namespace) and known is None
        return Need.NONE if gone else Need.TOLERATED

    def keys_on(self, node: str) -> Iterator[Key | None]:
        return self._references.keys_on(node)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        return self._references.involved_objects(key)

    async def original(self, ref: Ref, _link: Link, copy: Object | None) -> Original | None:
        """Return the original with its body where a copy has to be created.

        Where one exists, the informer's metadata are enough: it sees every change. Before it has
        listed, nothing is known.
        """
        if copy is not None:
            known = self._informer.store.get(objects.join_key(ref.namespace, ref.name))
            if known is None:
                return Original("", "", "")

            return Original(objects.uid(known), "", "", str(known[_MARKS]))

        body = await self._read(ref)
        if body is None:
            return None

        return Original(objects.uid(body), objects.resource_version(body), "", None, body)

    async def _read(self, ref: Ref) -> Object | None:
        try:
            return await self._local.get(ref.kind, ref.name, ref.namespace)
        except NotFound:
            return None

    def _trim(self, original: Object) -> Object:
        """Keep that the claim exists, and a digest of its labels and annotations."""
        marks = copies.marks({"metadata": copies.metadata(original, self._identity)})
        return {**copies.only_names(original), _MARKS: marks}

    async def build(self, ref: Ref, original: Original, link: Link) -> Object | None:
        """Return the claim with one of the target's storage classes."""
        classes = link.options.storage_classes
        body = original.body or await self._read(ref)
        if body is None or classes is None:
            return None

        return claim(body, self._identity, classes)

    def update(self, body: Object, copy: Object) -> Object:
        """Take labels and annotations; the specification belongs to the target by now."""
        return copies.successor({**body, "spec": objects.spec(copy)}, copy)

    def is_up_to_date(self, _ref: Ref, _copy: Object, _original: Original) -> bool:
        """Accept any specification: it is never updated."""
        return True

    def replaces(self, copy: Object, original: Original) -> bool:
        """Refuse the copy of another claim: its volume has that claim's data."""
        made_of = objects.labels(copy).get(keys.PARENT_UID)
        return not (made_of and original.uid) or made_of == original.uid

    def is_equivalent(self, _other: Object, _original: Original) -> bool:
        """Accept a claim that somebody else created: it is meant to be used."""
        return True

    def _on_claim(self, old: Object | None, new: Object | None) -> None:
        """Wake the claim where it is used, and where there is a copy, which outlasts its use."""
        obj = objects.latest(old, new)
        ref = Ref(kinds.CLAIMS, objects.namespace(obj), objects.name(obj))
        there = self._copies_of(ref)
        for link in self._links:
            if self.serves(link):
                key = Key(link.node_name, ref)
                if there.get(key.node) is not None or self._references.concerns(key):
                    self._wake(key)


def claim(original: Object, identity: Identity, classes: Mapping[str, str]) -> Object:
    """Return the copy of a claim: pure. A storage class that is not mapped keeps its name."""
    spec = objects.spec(original)
    wanted: Object = {field: spec[field] for field in _COPIED if field in spec}
    if name := storage.mapped_class(spec, classes):
        wanted["storageClassName"] = name

    return {"metadata": copies.metadata(original, identity), "spec": wanted}
