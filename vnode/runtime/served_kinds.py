"""Tells whether the local cluster serves a kind that others install, which may come and go.

The CRD of the kind is watched by its name alone, so one that comes later is noticed at once, and
one that is missing costs no requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from vnode.api import kinds, objects
from vnode.api.errors import NotFound, VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.keyed_tasks import KeyedTasks


def is_served(crd: Object | None, version: str) -> bool:
    """Tell whether a CRD's objects can be read, and are not about to go with it."""
    if crd is None or objects.is_terminating(crd):
        return False

    versions = objects.spec(crd).get("versions") or []
    served = [entry.get("name") for entry in versions if entry.get("served")]
    established = objects.is_condition_true(crd, "Established")
    return established and version in served


async def is_served_now(local: Client, kind: Kind) -> bool:
    """Ask the API server whether it serves a kind: a store may not know yet that its CRD goes."""
    try:
        return is_served(await local.get(kinds.CRDS, kind.resource), kind.version)
    except NotFound:
        return False


class ServedKind:
    """Watches the CRD of a kind; calls `changed` when the answer may be another."""

    def __init__(self, local: Client, kind: Kind, changed: Callable[[], None]) -> None:
        self.kind = kind
        self._changed = changed
        self._informer = Informer.of_object(local, kinds.CRDS, kind.resource)
        self._is_served = False
        self._informer.subscribe(self._on_crd)

    @property
    def synced(self) -> asyncio.Event:
        """Set once the API server has said so."""
        return self._informer.synced

    @property
    def is_known(self) -> bool:
        """Whether the API server has said so."""
        return self.synced.is_set()

    @property
    def is_served(self) -> bool:
        """Whether objects of the kind can be read, as far as that is known."""
        return self._is_served

    @property
    def failure(self) -> VnodeError | None:
        """Why it is not known."""
        return self._informer.failure

    def watch(self, tasks: KeyedTasks[str]) -> None:
        """Watch in these tasks; `changed` is called for the first answer, too."""
        name = f"crd-{self.kind.resource}"
        tasks.start(name, self.run, name)
        tasks.start(name, self._announce, f"{name}-first")

    async def run(self) -> None:
        """Watch the CRD until cancelled."""
        await self._informer.run()

    async def wait_answered(self) -> None:
        """Return once the API server has answered, or refused to."""
        await self._informer.answered.wait()

    async def _announce(self) -> None:
        """Tell of the first answer, which need not be an event."""
        await self._informer.answered.wait()
        self._changed()
        await self._informer.synced.wait()
        self._changed()

    def _on_crd(self, _old: Object | None, new: Object | None) -> None:
        served = is_served(new, self.kind.version)
        if served != self._is_served:
            self._is_served = served
            self._changed()
