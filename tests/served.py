"""Leaves out tests of what the clusters of a fleet lack: their API servers are asked, each once.

A fleet may have any supported version of Kubernetes (`hack/fleet up --kubernetes`), and clusters of
one version may have different features enabled.
"""

from __future__ import annotations

import pytest

from tests import kit
from vnode.api import kinds, objects
from vnode.api.errors import NotFound
from vnode.api.kinds import Kind
from vnode.api.node_features import NodeFeatures
from vnode.api.objects import Object
from vnode.kube.client import MERGE_PATCH, Client
from vnode.nodes import declared


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


async def labels_of_placed(client: Client) -> Object:
    """Return the labels that pods get by being on a node: newer API servers copy its topology."""
    pod = kit.pod("asked", annotations={}, nodeName=await _a_node(client))
    answer = await stored(client, kinds.PODS, pod, "default")
    return {k: v for k, v in objects.labels(answer).items() if k not in objects.labels(pod)}


async def need_declared_features(source: Client, target: Client) -> None:
    """Leave out the test unless nodes of the target can declare features, and virtual ones do.

    That an API server stores what nodes declare says nothing of virtual ones: 1.35 stores it, with
    the feature disabled.
    """
    path = kinds.NODES.path(None, await _a_node(target), "status")
    body = {"status": {"declaredFeatures": ["Asked"]}}
    answer = await target.request(
        "PATCH", path, query={"dryRun": "All"}, body=body, content_type=MERGE_PATCH
    )
    if not objects.status(answer).get("declaredFeatures"):
        pytest.skip(f"{target.name} drops status.declaredFeatures of nodes")

    version = (await source.request("GET", "/version"))["gitVersion"]
    if "declaredFeatures" not in declared.fields(NodeFeatures(), version):
        pytest.skip(f"virtual nodes of {source.name}, {version}, declare no features")


async def _a_node(client: Client) -> str:
    """Return the name of a node of the cluster itself."""
    nodes = await client.list(kinds.NODES, label_selector="type=kwok")
    return min(map(objects.name, nodes))
