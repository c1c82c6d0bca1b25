"""AddOnPlacementScores of Open Cluster Management: the kind, as far as tests need it."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from tests import kit
from vnode.api import kinds, objects
from vnode.api.errors import AlreadyExists
from vnode.api.objects import Object
from vnode.kube.client import Client

NAME: Final = "usage"
_SCORE: Final = {
    "type": "object",
    "required": ["name", "value"],
    "properties": {
        "name": {"type": "string"},
        "value": {"type": "integer", "format": "int32", "minimum": -100, "maximum": 100},
    },
}
_STATUS: Final = {
    "type": "object",
    "properties": {
        "scores": {
            "type": "array",
            "items": _SCORE,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "validUntil": {"type": "string", "format": "date-time"},
    },
}


def crd() -> Object:
    """Return a CRD with the fields of scores alone."""
    kind = kinds.ADDON_PLACEMENT_SCORES
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": _STATUS}}},
    }
    return {
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [version],
        },
    }


async def install(client: Client, *clusters: str) -> None:
    """Install the kind, with a namespace for each cluster."""
    await client.create(kinds.CRDS, crd())
    await kit.until_served(client, kinds.ADDON_PLACEMENT_SCORES)
    for cluster in clusters:
        await kit.new_namespace(client, cluster)


async def write(client: Client, cluster: str, *, until: str = "", **scores: int) -> None:
    """Write the scores of a cluster, as a collector does."""
    kind = kinds.ADDON_PLACEMENT_SCORES
    with suppress(AlreadyExists):
        await client.create(kind, {"metadata": {"name": NAME}}, cluster)

    listed = [{"name": name, "value": value} for name, value in scores.items()]
    status = {"scores": listed, "validUntil": until or None}
    obj = await client.get(kind, NAME, cluster)
    patch = objects.status_patch(obj, status)
    await client.patch(kind, NAME, patch, cluster, subresource="status")
