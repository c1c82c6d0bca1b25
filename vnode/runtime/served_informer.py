"""Keeps a store of all objects of a kind that others install, while this cluster serves it.

The CRD is watched first (`served_kinds`): a kind that is removed takes its objects with it, and
nobody has deleted those. So while the kind is not served there are no objects, and what is known
then is that it is not served; what a store does not have is asked for before anything follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vnode.api import objects
from vnode.api.errors import Denied, NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Handler, Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_kinds import ServedKind, is_served_now


class ServedInformer:
    """Watches from `watch` on.

    Calls `changed(old, new)` for each change of an object, once all are known; and with None twice
    when all may be other, or known, or why they are not.
    """

    def __init__(
        self,
        local: Client,
        kind: Kind,
        changed: Handler,
        *,
        trim: Callable[[Object], Object] | None = None,
    ) -> None:
        self._local = local
        self.kind = kind
        self._changed = changed
        self._trim = trim
        self._served = ServedKind(local, kind, self._on_kind)
        self._informer: Informer | None = None  # while the kind is served
        self._tasks: KeyedTasks[str] | None = None

    def watch(self, tasks: KeyedTasks[str]) -> None:
        """Watch in these tasks from now on; more calls do nothing."""
        if self._tasks is None:
            self._tasks = tasks
            self._served.watch(tasks)

    @property
    def is_known(self) -> bool:
        """Whether it is known which objects there are, or that the kind is not served."""
        if not self._served.is_known:
            return False

        return self._informer is None or self._informer.synced.is_set()

    @property
    def is_served(self) -> bool:
        """Whether this cluster serves the kind, as far as that is known."""
        return self._informer is not None

    @property
    def failure(self) -> VnodeError | None:
        """Why objects cannot be read; once they are known, a fault that passes is none."""
        for part in (self._served, self._informer):
            error = part.failure if part is not None else None
            if part is not None and (isinstance(error, Denied) or not part.synced.is_set()):
                return error

        return None

    def values(self) -> Iterable[Object]:
        """Return all objects that are known."""
        return () if self._informer is None else self._informer.store.values()

    def get(self, key: str) -> Object | None:
        """Return the object of that key, None if it is not known."""
        return None if self._informer is None else self._informer.store.get(key)

    async def is_deleted(self, key: str) -> bool:
        """Ask the API server whether an object that the store does not have was deleted by itself,
        and not with its kind."""
        namespace, name = objects.split_key(key)
        try:
            await self._local.get(self.kind, name, namespace or None)
        except NotFound:
            return await is_served_now(self._local, self.kind)

        return False

    def _on_kind(self) -> None:
        served = self._served.is_served
        if self._tasks is not None and served != self.is_served:
            self._follow(self._tasks, served)

        self._changed(None, None)

    def _follow(self, tasks: KeyedTasks[str], served: bool) -> None:
        name = self.kind.resource
        if not served:
            self._informer = None
            tasks.stop(name)
            return

        informer = self._informer = Informer(self._local, self.kind, trim=self._trim)
        informer.subscribe(lambda old, new: self._on_object(informer, old, new))
        tasks.start(name, informer.run, name)
        tasks.start(name, lambda: self._announce(informer), f"{name}-first")

    async def _announce(self, informer: Informer) -> None:
        """Tell of the first answer, which need not be an event."""
        await informer.answered.wait()
        self._changed(None, None)
        await informer.synced.wait()
        self._changed(None, None)

    def _on_object(self, informer: Informer, old: Object | None, new: Object | None) -> None:
        if informer is self._informer and informer.synced.is_set():
            self._changed(old, new)
