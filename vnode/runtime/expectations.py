"""Remembers writes until the informer has seen them.

An informer lags behind. A reconciler that reads its store right after a write would decide the same
again, and write again. So a writer notes which version it changed; until the store has another one,
there is nothing to decide, and the event that brings it wakes the reconciler anyway.

A write that is not seen for minutes will never be: no informer watches it (a target's chaperons
that only one writer reads), or the API server was restored from a backup and has lost the write, or
counts its versions from a lower number now. By then every watch has been resumed or failed, so the
store is current, and the key is reconciled again.
"""

from __future__ import annotations

import asyncio
import itertools
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final, NamedTuple

from vnode.api import objects
from vnode.api.errors import NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

_GONE: Final = ""  # the version of an object that is no more
_DIGITS: Final = 20  # of an etcd revision at most; a hostile target may send millions
LOST_AFTER: Final = 180.0  # seconds; a silent watch is noticed in half of that


class _Write(NamedTuple):
    old: str  # versions before and after
    new: str
    at: float  # on the event loop's clock


class Expectations:
    """Keeps, for each key, our last write until its version or a newer one is seen, or it is lost.

    `wake` is called with the keys of lost writes.
    """

    def __init__(self, wake: Callable[[Any], None] = lambda _key: None) -> None:
        self._wake = wake
        self._writes: dict[Hashable, _Write] = {}  # oldest first; no entry: nothing to wait for
        self._timer: asyncio.TimerHandle | None = None  # set while there are entries

    async def patch(
        self,
        client: Client,
        kind: Kind,
        obj: Object,
        body: Object,
        *,
        key: Hashable | None = None,
        subresource: str | None = None,
        strategic: bool = False,
        if_unchanged: bool = False,
    ) -> Object | None:
        """Patch an object as the store has it, and expect its event; return None if it is gone.

        The key is `namespace/name` unless another one is given, for writes to several clusters.
        With `if_unchanged` it is a Conflict if the object has changed since: for what was decided
        by comparing, which would undo what others wrote if it were late (docs/decisions/0062).
        """
        if if_unchanged:
            body = objects.if_unchanged(body, obj)

        try:
            after = await client.patch(
                kind,
                objects.name(obj),
                body,
                objects.namespace(obj) or None,
                subresource=subresource,
                strategic=strategic,
            )
        except NotFound:
            return None

        self.expect(objects.key(obj) if key is None else key, obj, after)
        return after

    def expect(self, key: Hashable, before: Object, after: Object) -> None:
        """Note a write that changed `before` into `after`; the same version means no event.

        But an object that ends with its last finalizer is answered with the version that it had.
        """
        old, new = objects.resource_version(before), objects.resource_version(after)
        if old == new and objects.finalizers(before) and not objects.finalizers(after):
            new = _GONE

        if old != new:
            self._writes.pop(key, None)  # to be the last
            self._writes[key] = _Write(old, new, asyncio.get_running_loop().time())
            self._set_timer()

    def pending(self, key: Hashable, current: Object) -> bool:
        """Tell whether `current`, from the store, is older than our last write."""
        write = self._writes.get(key)
        if write is None:
            return False

        if _is_before(objects.resource_version(current), write.old, write.new):
            return True

        del self._writes[key]
        return False

    def forget(self, key: Hashable) -> None:
        """Drop the write of an object that is gone."""
        self._writes.pop(key, None)

    def _set_timer(self) -> None:
        """Set the timer at which the oldest write is lost."""
        if self._timer is None and self._writes:
            oldest = next(iter(self._writes.values()))
            loop, me = asyncio.get_running_loop(), weakref.ref(self)
            self._timer = loop.call_at(oldest.at + LOST_AFTER, _drop_lost, me, oldest.at)

    def drop_lost(self, until: float) -> None:
        """Drop the writes up to that moment, and wake their keys."""
        self._timer = None
        lost = itertools.takewhile(lambda each: each[1].at <= until, self._writes.items())
        for key, _ in list(lost):
            del self._writes[key]
            self._wake(key)

        self._set_timer()


def _drop_lost(expectations: weakref.ref[Expectations], until: float) -> None:
    """Drop lost writes; the reference is weak, since a timer must not keep a term in memory."""
    if (alive := expectations()) is not None:
        alive.drop_lost(until)


def _is_before(current: str, old: str, new: str) -> bool:
    """Compare versions of one kind as numbers (Kubernetes 1.35), all others for equality only."""
    if _is_number(current) and _is_number(new):
        return int(current) < int(new)

    return current == old


def _is_number(version: str) -> bool:
    return version.isdecimal() and len(version) <= _DIGITS
