"""A ClusterSource that selects namespaces, as a real API server's RBAC takes it."""

from __future__ import annotations

import asyncio

import pytest

from tests import kit
from tests.integration.test_sources import controller, make_cluster_source, reason
from tests.rights import may, until_may
from vnode.api import kinds, objects
from vnode.kube.client import Client

__all__ = ["controller"]

CHAPERONS = "multicluster.admiralty.io/podchaperons"
TAKES_PODS = (
    f"create {CHAPERONS}",
    f"delete {CHAPERONS}",
    "create /secrets",
    "list /secrets",
    "watch /configmaps",
    "get /pods/log",
    "create /pods/exec",
)
EVERYWHERE = (f"list {CHAPERONS}", f"watch {CHAPERONS}", "list /resourcequotas")
PROTECTED = ("kube-system", "kube-public", "kube-node-lease", "vnode")


async def denied(client: Client, user: str, namespace: str) -> bool:
    """Tell whether nothing is allowed in a namespace, "-" for all, that runs a pod there."""
    return not any([await may(client, user, f"{right} {namespace}") for right in TAKES_PODS])


async def until_denied(client: Client, user: str, namespace: str) -> None:
    """Wait until nothing is allowed there: the API server reads bindings with a delay."""
    async with asyncio.timeout(kit.PATIENCE):
        while not await denied(client, user, namespace):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("controller")
async def test_a_source_may_run_pods_where_labels_match_and_nowhere_else(
    client: Client, namespace: str
) -> None:
    label = {f"pool-{namespace}": "gpu"}
    account = {"name": "east", "namespace": namespace}
    spec = {"serviceAccount": account, "namespaceSelector": {"matchLabels": label}}
    await client.patch(kinds.NAMESPACES, "kube-system", {"metadata": {"labels": label}})
    await make_cluster_source(client, namespace, spec)
    user = f"system:serviceaccount:{namespace}:east"
    await reason(client, kinds.CLUSTER_SOURCES, namespace, "", "NoNamespace")
    for right in EVERYWHERE:
        await until_may(client, user, right)

    assert await denied(client, user, namespace)
    await client.patch(kinds.NAMESPACES, namespace, {"metadata": {"labels": label}})
    for right in TAKES_PODS:
        await until_may(client, user, f"{right} {namespace}")

    ready = await reason(client, kinds.CLUSTER_SOURCES, namespace, "", "Bound")
    assert ready["message"].endswith(f"in 1 namespace: {namespace}")
    for other in (*PROTECTED, "default", "-"):
        assert await denied(client, user, other), other

    later = await kit.new_namespace(client, f"{namespace}-later")
    assert await denied(client, user, later)
    await client.patch(kinds.NAMESPACES, later, {"metadata": {"labels": label}})
    await until_may(client, user, f"create {CHAPERONS} {later}")
    gone = dict.fromkeys(label)
    await client.patch(kinds.NAMESPACES, later, {"metadata": {"labels": gone}})
    await until_denied(client, user, later)
    await client.patch(kinds.NAMESPACES, "kube-system", {"metadata": {"labels": gone}})
    await client.delete(kinds.CLUSTER_SOURCES, namespace)
    await until_denied(client, user, namespace)


@pytest.mark.usefixtures("controller")
async def test_an_empty_selector_gives_all_but_the_namespaces_of_kubernetes_and_of_the_agents(
    client: Client, namespace: str
) -> None:
    spec = {"userName": f"east-{namespace}", "namespaceSelector": {}}
    await make_cluster_source(client, namespace, spec)
    user = f"east-{namespace}"
    for there in (namespace, "default"):
        await until_may(client, user, f"create /pods/exec {there}")

    for other in (*PROTECTED, "-"):
        assert await denied(client, user, other), other

    await client.patch(kinds.CLUSTER_SOURCES, namespace, {"spec": {"namespaceSelector": None}})
    await until_may(client, user, "get /secrets kube-system")
    narrow = {"spec": {"namespaceSelector": {}}}
    await client.patch(kinds.CLUSTER_SOURCES, namespace, narrow)
    await until_denied(client, user, "kube-system")
    await client.delete(kinds.CLUSTER_SOURCES, namespace)


@pytest.mark.usefixtures("controller")
async def test_a_selector_that_is_none_is_refused_by_the_crd_or_told(
    client: Client, namespace: str
) -> None:
    broken = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    spec = {"userName": "east", "namespaceSelector": broken}
    made = await make_cluster_source(client, namespace, spec)
    ready = await reason(client, kinds.CLUSTER_SOURCES, namespace, "", "Invalid")
    assert ready["message"].startswith("spec.namespaceSelector: ")
    assert objects.uid(made)
    await client.delete(kinds.CLUSTER_SOURCES, namespace)
