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
    found: Objects = []
    for kind, where in ((kinds.TARGETS, namespace), (kinds.CLUSTER_TARGETS, None)):
        try:
            found += await client.list(kind, where)
        except (NotFound, Denied):
            continue

    return sorted(found, key=objects.key)
