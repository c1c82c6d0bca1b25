"""ConfigMaps and Secrets, which follow the pods, and the Ingresses, that refer to them.

In the source only metadata is watched, and only in namespaces where something refers to such an
object: a cluster may have ten thousand Secrets. The content is read when a copy may differ, and
only a digest of it is kept; likewise of the copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.following import copies
from vnode.following.family import Demand, Family, FamilyContext, Original
from vnode.following.reference_index import Key, Need, ReferenceIndex, strongest
from vnode.following.references import Ref
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.link import Link
from vnode.runtime.supervisor import Supervisor


@dataclass(slots=True)
class _WatchedNamespace:
    """What is known of the originals in a namespace where something refers to some."""

    informers: dict[Kind, Informer] = field(default_factory=dict)
    known: dict[Ref, Original] = field(default_factory=dict)
    """Without bodies; valid while the version is the same."""
    tokens: dict[Ref, str] = field(default_factory=dict)
    """Tokens of service accounts, which stay; their versions."""
    absent: set[Ref] = field(default_factory=set)
    """Read, and not found; counts until the namespace is listed."""

    def forget(self, ref: Ref) -> None:
        """Drop what was read of an object."""
        self.known.pop(ref, None)
        self.tokens.pop(ref, None)


_UNWATCHED: Final = _WatchedNamespace()  # empty, and stays so


class ConfigObjects(Family):
    """The family of ConfigMaps and Secrets.

    `others` are reasons, besides references of pods, for which some are needed. They are told of
    pods first.
    """

    carried = (kinds.CONFIG_MAPS, kinds.SECRETS)
    setting = "following.configMapsAndSecrets"

    def __init__(
        self,
        context: FamilyContext,
        references: ReferenceIndex,
        others: Sequence[Demand] = (),
    ) -> None:
        self._local = context.local
        self._links = context.links
        self._identity = context.identity
        self._wake = context.wake
        self._references = references
        self._demands: Sequence[Demand] = (references, *others)
        self._tasks: KeyedTasks[tuple[Kind, str]] | None = None  # None until `open`
        self._namespaces: dict[str, _WatchedNamespace] = {}

    async def open(self, tasks: Supervisor) -> None:
        self._tasks = tasks.keyed()

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Update the references, and stop watching a namespace in which none is left."""
        self._references.on_pod(old, new)
        namespace = objects.namespace(objects.latest(old, new))
        if not any(demand.in_namespace(namespace) for demand in self._demands):
            self._leave(namespace)

    def need(self, key: Key, link: Link) -> Need:
        """Return the strongest need of all demands."""
        return strongest(demand.need(key, link) for demand in self._demands)

    def keys_on(self, node: str) -> Iterator[Key | None]:
        for demand in self._demands:
            yield from demand.keys_on(node)

    def involved_objects(self, key: Key) -> Iterator[Object]:
        for demand in self._demands:
            yield from demand.involved_objects(key)

    async def original(self, ref: Ref, _link: Link, copy: Object | None) -> Original | None:
        """Read the original only if it has changed since it was last read."""
        return await self._original(ref, sure=copy is not None)

    def has_changed(self, ref: Ref) -> bool:
        """Tell whether the version that was read is no longer that of the informer."""
        there = self._there(ref)
        informer, known = there.informers.get(ref.kind), there.known.get(ref)
        read = known.version if known else there.tokens.get(ref)
        listed = informer and informer.store.get(objects.join_key(ref.namespace, ref.name))
        return bool(read and listed and objects.resource_version(listed) != read)

    async def _original(self, ref: Ref, *, sure: bool) -> Original | None:
        """Return the original; with `sure` it is None only if it does not exist."""
        informer, there = self._informer(ref.kind, ref.namespace), self._there(ref)
        if informer.synced.is_set():
            listed = informer.store.get(objects.join_key(ref.namespace, ref.name))
            if listed is None and not sure:
                there.tokens.pop(ref, None)
                return None

            if listed and there.tokens.get(ref) == objects.resource_version(listed):
                return None

            known = there.known.get(ref)
            if listed and known and known.version == objects.resource_version(listed):
                return known

        return await self._read(ref)

    async def is_token(self, ref: Ref, sure: bool) -> bool:
        """Tell whether a Secret is the token of a service account; `sure` is as in `_original`."""
        if self._tasks is None:
            await self._read(ref)
        else:
            await self._original(ref, sure=sure)

        return ref in self._there(ref).tokens

    def is_absent(self, ref: Ref) -> bool:
        """Tell whether the source lacks an object, as far as known; costs no request."""
        informer = self._there(ref).informers.get(ref.kind)
        if informer is None or not informer.synced.is_set():
            return ref in self._there(ref).absent

        return objects.join_key(ref.namespace, ref.name) not in informer.store

    async def build(self, ref: Ref, original: Original, _link: Link) -> Object | None:
        """Return a copy of all content that the original has now."""
        if original.body is None:
            original = await self._read(ref) or original

        return copies.content(original.body, self._identity) if original.body else None

    def trim(self, copy: Object) -> Object:
        """Drop the content, but for a digest."""
        return copies.trim(copy)

    def is_up_to_date(self, _ref: Ref, copy: Object, original: Original) -> bool:
        """Tell whether the content is equal, and the parent is the present original."""
        uid = objects.labels(copy).get(keys.PARENT_UID)
        return self.is_equivalent(copy, original) and uid == original.uid

    def is_equivalent(self, other: Object, original: Original) -> bool:
        """Tell whether the content is equal."""
        return bool(other["digest"] == original.digest)

    async def _read(self, ref: Ref) -> Original | None:
        body = await self.read(self._local, ref)
        there = self._namespaces.setdefault(ref.namespace, _WatchedNamespace())
        if body is None:
            there.forget(ref)
            there.absent.add(ref)
            return None

        version, uid = objects.resource_version(body), objects.uid(body)
        there.tokens.pop(ref, None)
        if body.get("type") == copies.TOKEN_TYPE:
            there.tokens[ref] = version

        there.absent.discard(ref)
        if copies.is_stray(body):
            return None

        marks = copies.marks(copies.content(body, self._identity))
        original = Original(uid, version, copies.digest(body), marks, body)
        there.known[ref] = replace(original, body=None)
        return original

    def _there(self, ref: Ref) -> _WatchedNamespace:
        return self._namespaces.get(ref.namespace, _UNWATCHED)

    def _informer(self, kind: Kind, namespace: str) -> Informer:
        """Return the informer of a kind in a namespace; start it the first time."""
        informers = self._namespaces.setdefault(namespace, _WatchedNamespace()).informers
        if found := informers.get(kind):
            return found

        informer = Informer(
            self._local, kind, namespace=namespace, metadata_only=True, trim=copies.only_names
        )
        informer.subscribe(lambda old, new: self._on_original(kind, old, new))
        informers[kind] = informer
        assert self._tasks is not None, "open it first"
        name = f"following {kind.plural} of {namespace}"
        self._tasks.start((kind, namespace), informer.run, name)
        return informer

    def _on_original(self, kind: Kind, old: Object | None, new: Object | None) -> None:
        """Wake the object in every target where it is needed."""
        obj = objects.latest(old, new)
        ref = Ref(kind, objects.namespace(obj), objects.name(obj))
        for link in self._links:
            key = Key(link.node_name, ref)
            if any(demand.concerns(key) for demand in self._demands):
                self._wake(key)

    def _leave(self, namespace: str) -> None:
        """Stop watching a namespace to which nothing refers."""
        left = self._namespaces.pop(namespace, None)
        for kind in left.informers if left else ():
            if self._tasks is not None:
                self._tasks.stop((kind, namespace))
