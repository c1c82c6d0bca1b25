"""Delegates that run on where vnode goes: their chaperons must not keep a finalizer that none takes
off, and they no owner whose kind is about to go.

The door is closed, but requests that were under way still come through it, and an agent makes pods
of what they bring; others change a chaperon just as it is let go. So both kinds are watched, until
there has been nothing to do for a while.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.cli.removing import waiting
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.supervisor import supervise

_LATE: Final = 2.0  # seconds in which requests that were under way have ended


class Keeper:
    """Lets chaperons go that are not about to end; `detach` makes their pods plain ones."""

    def __init__(self, client: Client, *, detach: bool) -> None:
        self._client = client
        self._chaperons = Informer(client, kinds.POD_CHAPERONS)
        self._pods = Informer(client, kinds.PODS, label_selector=keys.PARENT_UID)
        self._watched = (self._chaperons, self._pods) if detach else (self._chaperons,)
        self._changed = asyncio.Event()
        for informer in self._watched:
            informer.subscribe(lambda _old, _new: self._changed.set())

    @property
    def staying(self) -> Objects:
        """The chaperons that nobody has deleted."""
        return [obj for obj in self._chaperons.store.values() if not objects.is_terminating(obj)]

    async def run(self, seconds: float) -> Objects:
        """Until nothing is left to do, and nothing more comes; what is left after that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + _LATE), supervise() as tasks:
                for informer in self._watched:
                    tasks.start(informer.run(), f"kept-{informer.kind.plural}")

                for informer in self._watched:
                    await informer.synced.wait()

                while await self._comes():
                    await self._pass()

        for informer in self._watched:
            waiting.check_seen(informer, seconds)

        return self._held() + self._owned()

    def _held(self) -> Objects:
        return [obj for obj in self.staying if keys.DELEGATE_FINALIZER in objects.finalizers(obj)]

    def _owned(self) -> Objects:
        """The pods to detach.

        Their chaperons were let go before: an agent ends one that is deleted as soon as it has no
        pod, and while our finalizer is on it, its source takes that for the end of the pod.
        """
        held = {objects.uid(obj) for obj in self._held()}
        free = {objects.uid(obj) for obj in self.staying} - held
        return [pod for pod in self._pods.store.values() if objects.controller_uid(pod) in free]

    async def _comes(self) -> bool:
        """Wait until there is something to do; False if there is nothing for some time."""
        try:
            async with asyncio.timeout(_LATE):
                while not self._held() and not self._owned():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False

        return True

    async def _pass(self) -> None:
        """Once over all, and on when something has changed: by what was done, or by others."""
        self._changed.clear()
        for chaperon in self._held():
            with suppress(Conflict):  # it was changed meanwhile, perhaps deleted
                await let_go(self._client, chaperon, unchanged=True)

        for pod in self._owned():
            with suppress(Conflict):
                await self._detach(pod)

        await self._changed.wait()

    async def _detach(self, pod: Object) -> None:
        owner, references = objects.controller_uid(pod), objects.metadata(pod)["ownerReferences"]
        kept = [reference for reference in references if reference.get("uid") != owner]
        metadata = {"ownerReferences": kept, "resourceVersion": objects.resource_version(pod)}
        await _patch(self._client, kinds.PODS, pod, metadata)


async def let_go(client: Client, chaperon: Object, *, unchanged: bool = False) -> None:
    """Take our finalizer off; Conflict if it must be `unchanged` since it was read, and is not."""
    kept = [name for name in objects.finalizers(chaperon) if name != keys.DELEGATE_FINALIZER]
    if kept == objects.finalizers(chaperon):
        return

    metadata: Object = {"finalizers": kept}
    if unchanged:
        metadata["resourceVersion"] = objects.resource_version(chaperon)

    await _patch(client, kinds.POD_CHAPERONS, chaperon, metadata)


async def _patch(client: Client, kind: Kind, obj: Object, metadata: Object) -> None:
    """Change this very object, if it is still there."""
    body = {"metadata": {"uid": objects.uid(obj), **metadata}}
    with suppress(NotFound):
        await client.patch(kind, objects.name(obj), body, objects.namespace(obj))
