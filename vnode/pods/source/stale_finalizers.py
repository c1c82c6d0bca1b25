"""Removes finalizers of deleted Targets from proxy pods that live on.

A proxy pod is admitted with the finalizers of all Targets that it may go to. They are removed
together when it ends (`termination`), so one of a deleted Target blocks nothing; but a user who
reads the pod, or uninstalls vnode, should find only finalizers that mean something. Pods on the
node of a deleted Target are left out: those are about to end.

It may be wrong about a Target that its informer does not have yet. That one's finalizer is put back
before a pod is bound to its node (`binding.hold`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from vnode.api import keys, kinds, names, objects
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods.source import feedback
from vnode.runtime.controller import Controller
from vnode.runtime.rounds import WorkRounds
from vnode.telemetry import audit


class TargetNames(Protocol):
    """The Target objects of this cluster, whether they work or not."""

    def has_node(self, name: str) -> bool:
        """Return whether a Node of that name stands for one that exists, or is not known yet."""

    def has_finalizer(self, name: str) -> bool:
        """Return whether that finalizer belongs to one that exists, or is not known yet."""

    def subscribe_each(self, changed: Callable[[TargetKey], None]) -> None:
        """Call `changed` with the key of each that is added or deleted."""


class StaleFinalizers:
    """Runs in the leader."""

    def __init__(
        self, client: Client, proxies: Informer, targets: TargetNames, clock: Clock
    ) -> None:
        self._client = client
        self._proxies = proxies
        self._targets = targets
        self._clock = clock
        self._controller: Controller[str] = Controller(
            "released",
            self._reconcile,
            subject=audit.finder(kinds.PODS, proxies.store.get),
            workers=4,
            namespace=objects.key_namespace,
        )

    async def run(self) -> None:
        """Check all proxy pods, each that changes, and all again when a Target is deleted, which
        tenants may do all the time."""
        await self._proxies.synced.wait()
        rounds = WorkRounds(self._check_all, self._clock)
        self._targets.subscribe_each(lambda _key: rounds.ask())
        self._proxies.subscribe(lambda _old, new: self._check(new))
        rounds.ask()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._controller.run(), name="stale-finalizers")
            group.create_task(rounds.run(), name="stale-finalizers-of-all")

    async def _check_all(self) -> None:
        async for pod in in_slices(list(self._proxies.store.values()), self._clock):
            self._check(pod)

    def _check(self, pod: Object | None) -> None:
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
        """Build the merge patch; None if there is nothing to remove."""
        node = objects.node_name(pod)
        is_lost = names.may_be_virtual_node(node) and not self._targets.has_node(node)
        if is_lost or objects.is_terminating(pod):
            return None

        return feedback.without_finalizers(pod, self._stays)

    def _stays(self, finalizer: str) -> bool:
        return not finalizer.startswith(keys.PREFIX) or self._targets.has_finalizer(finalizer)
