"""Leaves out tests of what the clusters of a fleet lack: their API servers are asked, each once.

A fleet may have any supported version of Kubernetes (`hack/fleet up --kubernetes`), and clusters of
one version may have different features enabled.
"""

from __future__ import annotations

import pytest

from vnode.api.errors import NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


async def serves(client: Client, kind: Kind) -> bool:
    """Tell whether the API server of a cluster has a kind, in that version of its group."""
    try:
        await client.list(kind)
    except NotFound:
        return False

    return True


async def need(kind: Kind, *clients: Client) -> None:
    """Leave out the test unless all of these clusters serve a kind."""
    for client in clients:
        if not await serves(client, kind):
            pytest.skip(f"{client.name} does not serve {kind.plural} of {kind.api_version}")


async def stored(client: Client, kind: Kind, obj: Object, namespace: str) -> Object:
    """Return what an API server would store of a new object: it may drop fields."""
    return await client.request("POST", kind.path(namespace), query={"dryRun": "All"}, body=obj)
