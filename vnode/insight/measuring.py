"""What targets and pods use, as the metrics API says it.

Metrics cannot be watched; `RESOLUTION` is how often it is worth looking.
"""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.api.resources import Resources
from vnode.insight import accounts
from vnode.kube.client import Client

RESOLUTION: Final = 15.0  # seconds, metrics-server's own


async def of_nodes(client: Client) -> dict[str, Resources]:
    """By the name of the node; ApiError where no metrics API answers."""
    found = await client.list(kinds.NODE_METRICS)
    return {objects.name(one): accounts.amounts(one.get("usage")) for one in found}


async def of_pods(client: Client, namespace: str | None) -> dict[str, Resources]:
    """By the key of the pod; ApiError where no metrics API answers."""
    found = await client.list(kinds.POD_METRICS, namespace)
    return {objects.key(one): accounts.usage_of_pod(one) for one in found}
