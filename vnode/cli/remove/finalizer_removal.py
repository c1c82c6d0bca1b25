"""Keeps delegate pods running through an uninstall.

Removes vnode's finalizer from their chaperons, since no agent will be there to remove it. If the
CRDs are about to be deleted, it also removes the owner references from the pods, or the garbage
collector would delete them with their chaperons.

Sources may no longer create chaperons by then, but requests in flight still arrive, the agent still
creates pods for them, and others change a chaperon while it is patched. So this watches both kinds,
until there has been nothing to do for a while.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import Conflict, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.api.owners import key_as_owner, owner_key
from vnode.cli import waiting
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.runtime.supervisor import supervise

_LATE: Final = 2.0  # seconds after which no request is in flight any more


class FinalizerRemover:
    """Removes our finalizer from chaperons that are not terminating.

    With `detach`, it also removes the owner references from their pods.
    """

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
        """Return the chaperons that are not terminating."""
        return [obj for obj in self._chaperons.store.values() if not objects.is_terminating(obj)]

    async def run(self, seconds: float) -> Objects:
        """Work until nothing is left to do; return the objects that are left after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + _LATE), supervise() as tasks:
                for informer in self._watched:
                    tasks.start(informer.run(), f"released-{informer.kind.plural}")

                for informer in self._watched:
                    await informer.synced.wait()

                while await self._wait_for_work():
                    await self._reconcile()

        for informer in self._watched:
            waiting.check_synced(informer, seconds)

        return self._held() + self._owned()

    def _held(self) -> Objects:
        return [obj for obj in self.staying if keys.DELEGATE_FINALIZER in objects.finalizers(obj)]

    def _owned(self) -> Objects:
        """Return the pods to detach: those whose chaperon has lost our finalizer already.

        The order matters. While a chaperon has our finalizer, its source takes its end for the end
        of the pod, and an agent finishes a deleted chaperon as soon as it owns no pod.
        """
        held = {key_as_owner(obj) for obj in self._held()}
        free = {key_as_owner(obj) for obj in self.staying} - held
        return [pod for pod in self._pods.store.values() if owner_key(pod) in free]

    async def _wait_for_work(self) -> bool:
        """Wait until there is something to do; return False if nothing comes for some time."""
        try:
            async with asyncio.timeout(_LATE):
                while not self._held() and not self._owned():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False

        return True

    async def _reconcile(self) -> None:
        """Patch each object once, then wait for a change, ours or anybody's."""
        self._changed.clear()
        for chaperon in self._held():
            with suppress(Conflict):  # somebody has changed or deleted it since
                await remove_finalizers(self._client, chaperon, unchanged=True)

        for pod in self._owned():
            with suppress(Conflict):
                await self._detach(pod)

        await self._changed.wait()

    async def _detach(self, pod: Object) -> None:
        owner, references = objects.controller_uid(pod), objects.metadata(pod)["ownerReferences"]
        kept = [reference for reference in references if reference.get("uid") != owner]
        body = objects.if_unchanged({"metadata": {"ownerReferences": kept}}, pod)
        await _patch(self._client, kinds.PODS, pod, body)


async def remove_finalizers(client: Client, chaperon: Object, *, unchanged: bool = False) -> None:
    """Remove our finalizer; if `unchanged`, raise Conflict if the chaperon was changed since."""
    kept = objects.finalizers_without(chaperon, keys.DELEGATE_FINALIZER)
    if kept == objects.finalizers(chaperon):
        return

    body: Object = {"metadata": {"uid": objects.uid(chaperon), "finalizers": kept}}
    if unchanged:
        body = objects.finalizers_patch(chaperon, kept)

    await _patch(client, kinds.POD_CHAPERONS, chaperon, body)


async def _patch(client: Client, kind: Kind, obj: Object, body: Object) -> None:
    with suppress(NotFound):
        await client.patch(kind, objects.name(obj), body, objects.namespace(obj))
