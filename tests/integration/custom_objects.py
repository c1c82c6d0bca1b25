"""Creates objects of vnode's kinds, cluster-scoped or not, with names that no other test has."""

from __future__ import annotations

from typing import Any

from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


async def create(
    client: Client, kind: Kind, namespace: str, name: str = "", **fields: Any
) -> Object:
    """Create an object with these fields, named after its namespace if no name is given."""
    meta = {"name": name or namespace, **({"namespace": namespace} if kind.namespaced else {})}
    return await client.create(kind, {"metadata": meta, **fields})
