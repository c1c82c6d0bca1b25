"""What the contract of API servers is written with.

The tests of `contract_writes`, `contract_pods`, `contract_reads` and `contract_deletes` hold for
every API server: they run against a real kube-apiserver and against the one in memory. A module of
tests imports them all, and has two fixtures: `client`, with an administrator's rights, and
`pod_namespace`, in which pods can be created and which no webhook looks at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import Event, ListOptions

MAPS = kinds.CONFIG_MAPS
CHAPERONS = kinds.POD_CHAPERONS


def config_map(namespace: str, name: str = "a", /, data: Any = None, **metadata: Any) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "data": data or {}}


def pod(namespace: str, name: str = "p", /, node: str = "", **metadata: Any) -> Object:
    """Build a pod that no scheduler binds."""
    containers = [{"name": "main", "image": "busybox"}]
    spec: Object = {"containers": containers, "schedulerName": "example"}
    if node:
        spec["nodeName"] = node

    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}


def chaperon(namespace: str, name: str = "c", /, **metadata: Any) -> Object:
    return {**pod(namespace, name, **metadata)}


class Events:
    """The events of a watch, one by one."""

    def __init__(self, batches: AsyncIterator[list[Event]]) -> None:
        self._batches = batches
        self._waiting: list[Event] = []

    async def next(self) -> tuple[str, Object]:
        """Wait for the next event that is no bookmark."""
        async with asyncio.timeout(60):
            while not self._waiting:
                batch = await anext(self._batches)
                self._waiting += [e for e in batch if e.type != watching.BOOKMARK]

        event = self._waiting.pop(0)
        return event.type, event.object


@asynccontextmanager
async def watched(
    client: Client, kind: Kind, namespace: str, version: str = "", **options: Any
) -> AsyncIterator[Events]:
    """Watch from a version, or from now on."""
    if not version:
        _items, version = await client.list_at(kind, namespace)

    async with aclosing(
        watching.stream(client, ListOptions(kind, namespace, **options), version)
    ) as batches:
        assert await anext(batches) == []
        yield Events(batches)


def condition_types(obj: Object) -> set[str]:
    return {entry["type"] for entry in objects.status(obj)["conditions"]}
