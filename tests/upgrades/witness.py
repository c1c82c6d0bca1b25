"""Watches source and targets all the time, and tells what was done to what runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests import background, kit
from tests.upgrades import harm
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

_COPIES = (kinds.SECRETS, kinds.SERVICES, kinds.CLAIMS)
_FROM_SOURCES = keys.PARENT_CLUSTER_NAME


@dataclass
class Witness:
    """`harm` says what was done since `guard` was called to what there was then."""

    source: Client
    targets: tuple[Client, ...]
    harm: list[str] = field(default_factory=list)
    _guarded: dict[str, Object] = field(default_factory=dict)
    _informers: dict[str, Informer] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)  # set at each event

    def __post_init__(self) -> None:
        self._watch(self.source, kinds.PODS, "default")
        self._watch(self.source, kinds.NODES, None, f"{keys.PROVIDER_LABEL}={keys.PROVIDER}")
        for target in self.targets:
            self._watch(target, kinds.PODS, "default")
            self._watch(target, kinds.POD_CHAPERONS, "default")
            self._watch(target, kinds.ENDPOINT_SLICES, "default")
            for kind in _COPIES:
                self._watch(target, kind, "default", _FROM_SOURCES)

    def _watch(
        self, client: Client, kind: Kind, namespace: str | None, label_selector: str = ""
    ) -> None:
        informer = Informer(client, kind, namespace=namespace, label_selector=label_selector)
        informer.subscribe(lambda old, new: self._on(f"{client.name}: {kind.plural}", old, new))
        self._informers[f"{client.name}: {kind.plural}"] = informer

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers.values():
                group.create_task(informer.run())

    async def guard(self) -> None:
        """Hold everything that is there to be left alone from now on.

        Virtual nodes may be new: Kubernetes takes its taint off one once it is ready.
        """
        nodes = self._informers[f"{self.source.name}: {kinds.NODES.plural}"].store
        async with asyncio.timeout(kit.PATIENCE):
            while not all(map(_is_settled, nodes.values())):
                self._changed.clear()
                await self._changed.wait()

        for where, informer in self._informers.items():
            for obj in informer.store.values():
                self._guarded[f"{where} {objects.key(obj)}"] = obj

    def forget(self) -> None:
        """Guard nothing any more."""
        self._guarded.clear()

    def _on(self, where: str, old: Object | None, new: Object | None) -> None:
        self._changed.set()
        key = f"{where} {objects.key(new or old or {})}"
        if (before := self._guarded.get(key)) is None:
            return

        self.harm += [f"{key} {what}" for what in harm.of_change(before, new)]
        self._guarded.pop(key)
        if new is not None:
            self._guarded[key] = new


@asynccontextmanager
async def watching(source: Client, *targets: Client) -> AsyncIterator[Witness]:
    """Yield a witness that has seen everything that is there."""
    witness = Witness(source, targets)
    async with background.running(witness.run()):
        for informer in witness._informers.values():
            await informer.synced.wait()

        yield witness


def _is_settled(node: Object) -> bool:
    """Tell whether a node is ready, and has no taint of its first moments any more."""
    taints = objects.spec(node).get("taints") or ()
    return kit.is_ready(node) and not any(
        taint["key"].startswith("node.kubernetes.io/") for taint in taints
    )
