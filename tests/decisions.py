"""PlacementDecisions as others write them, and the CRDs of their kinds.

That of SIG Multicluster is the unmodified file of its module, which the first use on a machine
downloads; that of Open Cluster Management has the fields that count, written by hand from its API.
Tests with a simulated API server, which checks no schema, take `established`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final

import yaml

from hack.fleetlib.tools import catalogue, gobuild
from tests import crds, kit, rights
from vnode.api import keys, kinds, objects
from vnode.api.errors import AlreadyExists, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client

SIG: Final = kinds.PLACEMENT_DECISIONS
OCM: Final = kinds.OCM_PLACEMENT_DECISIONS

_TEXT: Final = {"type": "string"}
_OCM_SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {
        "status": {
            "type": "object",
            "required": ["decisions"],
            "properties": {
                "decisions": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["clusterName", "reason"],
                        "properties": {"clusterName": _TEXT, "reason": _TEXT},
                    },
                }
            },
        }
    },
}


def crd(kind: Kind) -> Object:
    """Return the CRD of one of both kinds, as whoever installs it applies it."""
    return _sig_crd() if kind is SIG else crds.build(kind, _OCM_SCHEMA)


def _sig_crd() -> Object:
    """Return the CRD of SIG Multicluster's PlacementDecisions, unmodified."""
    bases = gobuild.source(catalogue.CLUSTER_INVENTORY_MODULE) / "config/crd/bases"
    file = bases / f"{SIG.group}_{SIG.plural}.yaml"
    found: Object = yaml.safe_load(file.read_text())
    return found


def established(kind: Kind) -> Object:
    """Return what a client reads of the CRD once the API server serves its kind."""
    return {
        **crds.build(kind),
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def of_profiles(
    key: str, *profiles: str, index: int | None = 0, namespace: str = "default", **more: Any
) -> Object:
    """Return a slice of SIG Multicluster's; profiles are `name` or `namespace/name`."""
    labels = {keys.DECISION_KEY: key}
    if index is not None:
        labels[keys.DECISION_INDEX] = str(index)

    entries: Objects = []
    for profile in profiles:
        home, _, name = profile.rpartition("/")
        reference = {"name": name, **({"namespace": home} if home else {})}
        entries.append({"clusterProfileRef": reference, "reason": "tests"})

    metadata = {"name": f"{key}-{index or 0}", "namespace": namespace, "labels": labels}
    return {"metadata": metadata, "decisions": entries, "schedulerName": "tests", **more}


def of_placement(
    placement: str, *clusters: str, number: int = 1, group: int = 0, namespace: str = "default"
) -> Object:
    """Return a decision as Open Cluster Management's controller writes it for a Placement."""
    labels = {keys.OCM_PLACEMENT: placement, keys.OCM_DECISION_GROUP: str(group)}
    name = f"{placement}-decision-{number}"
    decisions = [{"clusterName": cluster, "reason": ""} for cluster in clusters]
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "status": {"decisions": decisions},
    }


def reference(kind: Kind, name: str, **more: str) -> Object:
    """Return what a policy has as `decisionRef`."""
    named = "PlacementDecision" if kind is SIG else "Placement"
    return {"apiGroup": kind.group, "kind": named, "name": name, **more}


async def install(client: Client, kind: Kind) -> None:
    """Install the CRD of a kind, and return once it is served."""
    await client.create(kinds.CRDS, await asyncio.to_thread(crd, kind))
    await kit.until_served(client, kind)


async def uninstall(client: Client, kind: Kind) -> None:
    """Remove the CRD of a kind, with all its objects."""
    try:
        await client.delete(kinds.CRDS, kind.resource)
    except NotFound:
        return

    await kit.until_gone(client, kinds.CRDS, field_selector=f"metadata.name={kind.resource}")


async def decide(client: Client, obj: Object) -> None:
    """Write a decision, as whoever decides does: anew, or other clusters in place of the former."""
    kind = SIG if "decisions" in obj else OCM
    subresource = None if kind is SIG else "status"
    content = {field: value for field, value in obj.items() if field != "metadata"}
    namespace, name = objects.namespace(obj), objects.name(obj)
    await kit.until_served(client, kind)
    with suppress(AlreadyExists):
        await client.create(kind, obj)

    await client.patch(kind, name, content, namespace, subresource=subresource)


async def allow_publishing(source: Client) -> None:
    """Give the agent the right to write decisions, as an operator does."""
    await rights.bind(source, "vnode-published-decisions", "vnode-published-decisions")
