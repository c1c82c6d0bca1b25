"""Keeps a live copy of some objects of one API server, in a store.

Lists and events flow from reflectors into the store, and from there, as (old, new) pairs, to
subscribers, which only ever put keys into queues. There is one reflector, or one for each namespace
to which the client is held. Two promises matter to all code that deletes objects: `synced` is not
set before one complete list was stored, and an object leaves the store only by a DELETED event or
by being absent from a later complete list. A failed list changes nothing.

What is known of an object before its API server says so can be assumed, as annotations, in the way
of kube-scheduler's assume cache: readers then see them like those that were written.

Where the client is held to namespaces, one that lets nobody in keeps the others from nothing:
`synced` does not wait for it, and `knows` says of each namespace what `synced` says of all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock, SystemClock
from vnode.api.errors import VnodeError
from vnode.api.kinds import Kind
from vnode.api.listeners import Listeners
from vnode.api.objects import Object, Objects
from vnode.api.slices import in_slices
from vnode.kube import assumed_annotations, watching
from vnode.kube.assumed_annotations import AssumedAnnotations
from vnode.kube.client import Client
from vnode.kube.object_filter import Accept, Trim
from vnode.kube.reflector import Reflector
from vnode.kube.store import IndexFunction, Store
from vnode.kube.watching import ListOptions
from vnode.telemetry import metrics

Handler = Callable[[Object | None, Object | None], None]

_running: Final[set[Informer]] = set()  # for `measure`

log = logging.getLogger(__name__)


def measure() -> Iterator[None]:
    """Update the gauges of all running informers, step by step: each target has a dozen. Several
    may share a series."""
    held: dict[tuple[str, ...], int] = {}
    silent: dict[tuple[str, ...], float] = {}
    for informer in list(_running):
        held[informer.series] = held.get(informer.series, 0) + len(informer.store)
        silent[informer.series] = max(silent.get(informer.series, 0.0), informer.silence)
        yield

    yield from metrics.STORE_OBJECTS.show(held)
    yield from metrics.INFORMER_SILENCE.show(silent)


class Informer:
    """Keeps a store of objects of one kind up to date in `run`.

    `trim` makes an object smaller as soon as it is read; with `metadata_only` the server sends no
    more than metadata. `accept` is for API servers that need not be honest: an object that it
    refuses is treated as if it had not been sent, and the bytes that are taken are bounded, in all
    and over time (`read_limit`). One that is `optional` may be denied, for good: then it asks
    ever more rarely. With `ends_denied`, `run` raises Denied once it is forbidden, and not only
    while the server starts (`reflector_backoff`), instead of asking again.
    `failure` says why the last attempt failed; None after a success. `answered` is set with
    `synced`, or once the server says that there is no such kind, or that it may not be listed: wait
    for it where a kind is optional.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        trim: Trim | None = None,
        accept: Accept | None = None,
        indexes: Mapping[str, IndexFunction] | None = None,
        optional: bool = False,
        ends_denied: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.kind = kind
        self.store = Store(indexes)
        self.synced = asyncio.Event()
        self.answered = asyncio.Event()
        self._client = client
        self._clock = clock or SystemClock()
        self._handlers: Listeners[Object | None, Object | None] = Listeners()
        self._assumed = AssumedAnnotations()
        places = client.scope.places(kind, namespace)
        self._is_scoped = places != (namespace,)
        self._reflectors = tuple(
            Reflector(
                client,
                ListOptions(kind, place, label_selector, field_selector, metadata_only),
                self,
                in_scope=self._is_scoped,
                optional=optional,
                ends_denied=ends_denied,
                accept=accept,
                trim=trim,
                clock=self._clock,
            )
            for place in places
        )

    @property
    def series(self) -> tuple[str, str]:
        """The labels of the informer's metrics: cluster and resource."""
        return self._client.name, self.kind.plural

    @property
    def silence(self) -> float:
        """Seconds since the API server last sent a list, an event or a bookmark."""
        return max(reflector.silence for reflector in self._reflectors)

    @property
    def failure(self) -> VnodeError | None:
        """Why the last attempt failed; None after a success.

        Once synced, a namespace of several that lets nobody in is no failure.
        """
        for each in self._reflectors:
            passes = self._is_scoped and self.synced.is_set() and each.is_refused
            if each.failure is not None and not passes:
                return each.failure

        return None

    def knows(self, namespace: str) -> bool:
        """Tell whether it is known which objects a namespace has; if so, all others are gone."""
        if not self._is_scoped:
            return self.synced.is_set()

        return any(each.is_known for each in self._reflectors if each.namespace == namespace)

    def lacks(self, namespace: str) -> bool:
        """Tell whether objects that a namespace may have are not known, while others are."""
        if not self._is_scoped or not self.synced.is_set():
            return False

        return not any(each.is_listed for each in self._reflectors if each.namespace == namespace)

    def subscribe(self, handler: Handler) -> None:
        """Call `handler(old, new)` for every change from now on, and for every stored object.

        `old` is None for a new object, `new` is None for one that is gone. The handler must not
        await.
        """
        self._handlers.add(handler)
        for obj in list(self.store.values()):
            self._call(handler, None, obj)

    def subscribe_by_key(self, handler: Callable[[str], None]) -> None:
        """Call `handler` with the key of each object that has changed, as `subscribe` does."""
        self.subscribe(lambda old, new: handler(objects.key(objects.latest(old, new))))

    def assume(self, key: str, uid: str, annotation: str, value: str) -> None:
        """Show an annotation on the object of that UID until `restore`, or the object's end.

        One that the API server has comes first. Subscribers are called if the object is stored.
        """
        stored = self._stored(key, uid)
        if stored is not None and annotation in objects.annotations(stored):
            return

        self._assumed.add(uid, annotation, value)
        if stored is not None:
            self._show(assumed_annotations.changed(stored, annotation, value))

    def restore(self, key: str, uid: str, annotation: str) -> None:
        """Show of an annotation what the API server has, no longer what was assumed."""
        is_assumed = self._assumed.remove(uid, annotation)
        if is_assumed and (stored := self._stored(key, uid)) is not None:
            self._show(assumed_annotations.changed(stored, annotation, None))

    def is_assumed(self, uid: str, annotation: str) -> bool:
        """Tell whether an annotation is shown that the API server is not known to have."""
        return self._assumed.has(uid, annotation)

    def _stored(self, key: str, uid: str) -> Object | None:
        stored = self.store.get(key)
        return stored if stored is not None and objects.uid(stored) == uid else None

    def _show(self, obj: Object) -> None:
        self._notify(self.store.put(obj), obj)

    def retry_now(self) -> None:
        """End a back-off early; call it when the API server seems to be back."""
        for reflector in self._reflectors:
            reflector.retry_now()

    @classmethod
    def of_object(
        cls,
        client: Client,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        clock: Clock | None = None,
    ) -> Informer:
        """Make an informer for the one object of that name; no other need be readable."""
        selector = f"metadata.name={name}"
        return cls(client, kind, namespace=namespace, field_selector=selector, clock=clock)

    async def run(self) -> None:
        """List and watch until cancelled; failures are kept in `failure` and retried."""
        _running.add(self)
        try:
            if len(self._reflectors) == 1:
                await self._reflectors[0].run()
            else:
                await self._run_all()
        finally:
            _running.discard(self)

    async def _run_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for each in self._reflectors:
                group.create_task(each.run(), name=f"{self.kind.plural}-of-{each.namespace}")

    async def replace(self, items: Objects, namespace: str | None) -> None:
        """Take what is kept of a whole list, of a namespace or of all: what it lacks is gone."""
        seen = {objects.key(item) async for item in in_slices(items, self._clock)}
        place = f"{namespace}/" if namespace else ""
        gone = [key for key in self.store if key not in seen and key.startswith(place)]
        async for key in in_slices(gone, self._clock):
            self._remove(key)

        async for item in in_slices(items, self._clock):
            self._put(item)

    def apply(self, type_: str, obj: Object) -> None:
        """Take an event of a watch, with what is kept of its object."""
        if type_ == watching.TOO_LARGE:
            self._remove(objects.key(obj))
        elif type_ == watching.DELETED:
            self._remove(objects.key(obj), obj)
        else:
            self._put(obj)

    def on_answer(self) -> None:
        """Note what is known now."""
        if all(each.is_known or each.is_refused for each in self._reflectors):
            if any(each.is_known for each in self._reflectors):
                self.synced.set()

            self.answered.set()

    def _put(self, obj: Object) -> None:
        known = self.store.get(objects.key(obj))
        if known is not None and objects.resource_version(known) == objects.resource_version(obj):
            return

        if known is not None and objects.uid(known) != objects.uid(obj):
            self._remove(objects.key(obj))

        obj = self._assumed.shown(obj)
        self._notify(self.store.put(obj), obj)

    def _remove(self, key: str, last: Object | None = None) -> None:
        """Forget an object; subscribers get its last known state."""
        old = self.store.pop(key)
        if old is not None:
            self._notify(self._assumed.shown(last or old), None)
            self._assumed.forget(objects.uid(old))

    def _notify(self, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            self._call(handler, old, new)

    def _call(self, handler: Handler, old: Object | None, new: Object | None) -> None:
        try:
            handler(old, new)
        except Exception:
            log.exception("a subscriber to %s of %s failed", self.kind.plural, self._client.name)
