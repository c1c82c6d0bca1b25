"""Taints of ManagedClusters on virtual nodes: real API servers, and a CRD that comes and goes."""

from __future__ import annotations

from tests import crds, kit
from tests.integration.kept_nodes import (
    FixedTargets,
    connected,
    running,
    taints,
    target,
    until,
)
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.nodes.managed_clusters import ManagedClusters
from vnode.runtime.link import ClusterDescription

__all__ = ["target"]


async def test_taints_come_with_their_kind_and_stay_without(
    client: Client, target: TargetKey
) -> None:
    links, link = await connected(client, target)
    link.describe(ClusterDescription({keys.OCM_CLUSTER_NAME: "berlin"}))
    wanted = {"key": "full", "value": "yes", "effect": "NoSchedule"}
    theirs = {"key": "team", "effect": "NoSchedule"}
    async with running(client, links, FixedTargets(target), ManagedClusters(client)):
        node = await until(client, target, lambda node: keys.PROVIDER_TAINT in taints(node))
        body = {"spec": {"taints": [*taints(node), theirs]}}
        await client.patch(kinds.NODES, target.node_name, body)
        await client.create(kinds.CRDS, crds.build(kinds.MANAGED_CLUSTERS))
        await kit.until_served(client, kinds.MANAGED_CLUSTERS)
        taint = {"key": "full", "value": "yes", "effect": "NoSelect"}
        cluster: Object = {"metadata": {"name": "berlin"}, "spec": {"taints": [taint]}}
        await client.create(kinds.MANAGED_CLUSTERS, cluster)
        await until(client, target, lambda node: wanted in taints(node))
        await client.patch(kinds.MANAGED_CLUSTERS, "berlin", {"spec": {"taints": []}})
        node = await until(client, target, lambda node: wanted not in taints(node))
        assert theirs in taints(node)
        await client.patch(kinds.MANAGED_CLUSTERS, "berlin", {"spec": {"taints": [taint]}})
        await until(client, target, lambda node: wanted in taints(node))
        await client.delete(kinds.CRDS, kinds.MANAGED_CLUSTERS.resource)

    async with running(client, links, FixedTargets(target), ManagedClusters(client)):
        link.describe(ClusterDescription({keys.OCM_CLUSTER_NAME: "berlin", "seen": "yes"}))
        node = await until(client, target, lambda node: objects.labels(node).get("seen") == "yes")
        assert {wanted["key"], theirs["key"]} <= {taint["key"] for taint in taints(node)}
