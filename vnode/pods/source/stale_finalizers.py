"""Finalizers of Targets that are gone, taken off proxy pods that live on.

A proxy pod is admitted with the finalizers of all Targets that it may go to. They go together when
it ends (`ending`), so one of a Target that is gone keeps nothing; but whoever looks at the pod, or
takes vnode out of the cluster, is to find only what means something. Pods on the node of a Target
that is gone are not looked at here: those are about to end.

It may be wrong about a Target that it has not heard of yet. That one's finalizer is put back before
a pod is bound to its node (`binding.hold`).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from vnode.api import keys, kinds, names, objects
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods.source import feedback
from vnode.runtime.controller import Controller


class TargetNames(Protocol):
    """The Target objects of this cluster, whether they work or not."""

    def has_node(self, name: str) -> bool:
        """A Node of that name stands for one that exists, or for one not known yet."""

    def has_finalizer(self, name: str) -> bool:
        """That finalizer belongs to one that exists, or to one not known yet."""

    def subscribe_keys(self, changed: asyncio.Event) -> None:
        """Set `changed` whenever one comes or goes."""


class StaleFinalizers:
    """Runs in the leader."""

    def __init__(self, client: Client, proxies: Informer, targets: TargetNames) -> None:
        self._client = client
        self._proxies = proxies
        self._targets = targets
        self._controller: Controller[str] = Controller("released", self._reconcile, workers=4)

    async def run(self) -> None:
        """Look at all proxy pods, at each that changes, and at all when a Target goes."""
        await self._proxies.synced.wait()
        changed = asyncio.Event()
        self._targets.subscribe_keys(changed)
        self._proxies.subscribe(lambda _old, new: self._look_at(new))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._controller.run(), name="released-controller")
            while True:
                for pod in self._proxies.store.values():
                    self._look_at(pod)

                await changed.wait()
                changed.clear()

    def _look_at(self, pod: Object | None) -> None:
        if pod is not None and self._body(pod) is not None:
            self._controller.add(objects.key(pod))

    async def _reconcile(self, key: str) -> None:
        pod = self._proxies.store.get(key)
        if pod is None or (body := self._body(pod)) is None:
            return

        try:
            await self._client.patch(kinds.PODS, objects.name(pod), body, objects.namespace(pod))
        except NotFound:
            return

    def _body(self, pod: Object) -> Object | None:
        """The merge patch; None if there is nothing to take off."""
        node = objects.node_name(pod)
        is_lost = names.may_be_virtual_node(node) and not self._targets.has_node(node)
        if is_lost or objects.is_terminating(pod):
            return None

        return feedback.without_finalizers(pod, self._stays)

    def _stays(self, finalizer: str) -> bool:
        return not finalizer.startswith(keys.PREFIX) or self._targets.has_finalizer(finalizer)
