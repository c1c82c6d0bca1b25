"""Watches the objects that Targets name, of one kind, each one by itself.

One informer an object, not one for all: the agent need not keep, or even be allowed to read, the
others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from vnode.api import objects
from vnode.api.errors import Unreachable, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.served_kinds import ServedKind

_TIMEOUT: Final = 5.0  # seconds for the first list of an object


class NamedObjects:
    """Watches the objects in use, in `tasks`; calls `changed` for targets of a changed one."""

    def __init__(
        self,
        local: Client,
        kind: Kind,
        tasks: KeyedTasks[str],
        changed: Callable[[TargetKey], None],
    ) -> None:
        self._local = local
        self._kind = kind
        self._tasks = tasks  # by `namespace/name` of the object
        self._changed = changed
        self._names: dict[TargetKey, str] = {}  # `namespace/name` of those in use
        self._informers: dict[str, Informer] = {}  # by `namespace/name`: of each that is in use

    def use(self, key: TargetKey, name: str | None) -> None:
        """Watch the object, `namespace/name`, that a target names now, no longer the one before."""
        before = self._names.pop(key, None)
        if name is not None:
            self._names[key] = name
            self._follow(name)

        if before is not None and before not in self._names.values():
            del self._informers[before]
            self._tasks.stop(before)

    async def read(self, name: str) -> Object | None:
        """Return an object in use, None if there is none; Unreachable while that is unknown."""
        informer = self._informers[name]
        if await is_known(informer):
            return informer.store.get(name)

        raise Unreachable(
            f"{self._kind.kind} {name} cannot be read: {why_unknown(informer)}; see that the agent "
            "may get, list and watch it"
        )

    def _follow(self, name: str) -> None:
        if name in self._informers:
            return

        namespace, own = objects.split_key(name)
        informer = Informer.of_object(self._local, self._kind, own, namespace)
        informer.subscribe(lambda _old, _new: self._on_object(name))
        self._informers[name] = informer
        self._tasks.start(name, informer.run, f"{self._kind.kind.lower()}-{name}")

    def _on_object(self, name: str) -> None:
        for key, used in self._names.items():
            if used == name:
                self._changed(key)


async def is_known(informer: Informer | ServedKind) -> bool:
    """Wait a while for an informer's first list, not at all after a failure."""
    try:
        async with asyncio.timeout(0 if informer.failure else _TIMEOUT):
            await informer.synced.wait()
    except TimeoutError:
        return False

    return True


def why_unknown(informer: Informer | ServedKind) -> VnodeError | str:
    """Return why an informer has no list."""
    return informer.failure or f"no answer within {_TIMEOUT:.0f} s"
