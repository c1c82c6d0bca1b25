"""Reads the usage of targets and pods from the metrics API.

Metrics cannot be watched; `RESOLUTION` is how often they change.
"""

from __future__ import annotations

from typing import Final

from vnode.api import kinds, objects
from vnode.api.resources import Resources
from vnode.insight import accounts
from vnode.kube.client import Client

RESOLUTION: Final = 15.0  # seconds, metrics-server's own


async def of_nodes(client: Client) -> dict[str, Resources]:
    """Return usage by the name of the node; ApiError where no metrics API answers."""
    found = await client.list(kinds.NODE_METRICS)
    return {objects.name(node): accounts.amounts(node.get("usage")) for node in found}


async def of_pods(client: Client, namespace: str | None) -> dict[str, Resources]:
    """Return usage by the key of the pod; ApiError where no metrics API answers."""
    found = await client.list(kinds.POD_METRICS, namespace)
    return {objects.key(pod): accounts.usage_of_pod(pod) for pod in found}
