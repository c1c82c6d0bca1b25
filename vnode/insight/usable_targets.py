"""Lists the Targets that pods of a namespace may use."""

from __future__ import annotations

from vnode.api import kinds, objects
from vnode.api.errors import Denied, NotFound
from vnode.api.objects import Objects
from vnode.kube.client import Client


async def covering(client: Client, namespace: str | None) -> Objects:
    """List the Targets and ClusterTargets that pods of the namespace may use, sorted by key.

    With None those of all namespaces.
    """
    return (await readable(client, namespace))[0]


async def readable(client: Client, namespace: str | None) -> tuple[Objects, tuple[str, ...]]:
    """Return what `covering` does, and which of the two kinds may not be listed."""
    found: Objects = []
    unread = []
    for kind, where in ((kinds.TARGETS, namespace), (kinds.CLUSTER_TARGETS, None)):
        try:
            found += await client.list(kind, where)
        except NotFound:
            continue
        except Denied:
            unread.append(f"{kind.kind}s")

    return sorted(found, key=objects.key), tuple(unread)
