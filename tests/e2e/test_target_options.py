"""What a Target asks for beyond a connection: claims that follow, namespaces, service accounts."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.e2e.own_targets import home, shared
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["home", "shared"]

SIZE = {"requests": {"storage": "1Gi"}}


def scheduled(pod: Object) -> str:
    return str((objects.condition(pod, "PodScheduled") or {}).get("message"))


def claimant(name: str) -> Object:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    return kit.pod(name, volumes=[volume])


def data_claim() -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": SIZE, "storageClassName": "fast"}
    return {"metadata": {"name": "data"}, "spec": spec}


async def run_claimant(source: Client, name: str, namespace: str) -> None:
    await source.create(kinds.PODS, claimant(name), namespace)
    await kit.until_one(source, kinds.PODS, name, namespace, lambda p: kit.phase(p) == "Running")


@pytest.fixture
async def volume(c2: Client) -> AsyncIterator[str]:
    """Yield the name of a volume in c2, which is also the name of its own storage class."""
    name = f"disk-{uuid.uuid4().hex[:6]}"
    spec = {
        "storageClassName": name,
        "capacity": SIZE["requests"],
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
    }
    body = {
        "metadata": {"name": name},
        "spec": spec,
        "apiVersion": "v1",
        "kind": "PersistentVolume",
    }
    await c2.request("POST", "/api/v1/persistentvolumes", body=body)
    yield name
    await c2.request("DELETE", f"/api/v1/persistentvolumes/{name}")


async def test_a_claim_is_missed_by_name_or_follows_with_its_class_mapped(
    fleet: Fleet, source: Client, c2: Client, shared: str, volume: str
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, shared)
    await source.create(kinds.CLAIMS, data_claim(), shared)
    await source.create(kinds.PODS, claimant("waits"), shared)
    missing = 'persistentvolumeclaim "data" not found'
    await kit.until_one(source, kinds.PODS, "waits", shared, lambda p: missing in scheduled(p))

    annotations = {"annotations": {keys.STORAGE_CLASSES: f"fast={volume}"}}
    await source.patch(kinds.TARGETS, "bad", {"metadata": annotations}, shared)
    await kit.until_one(source, kinds.PODS, "waits", shared, lambda p: kit.phase(p) == "Running")
    copy = await c2.get(kinds.CLAIMS, "data", shared)
    assert objects.spec(copy)["storageClassName"] == volume
    marks = {"metadata": {"labels": {"tier": "db"}}}
    await source.patch(kinds.CLAIMS, "data", marks, shared)
    later = await kit.until_one(
        c2, kinds.CLAIMS, "data", shared, lambda c: objects.labels(c).get("tier") == "db"
    )
    assert objects.uid(later) == objects.uid(copy)
    await source.delete(kinds.PODS, "waits", shared)
    await kit.until_gone(source, kinds.PODS, shared)
    await source.delete(kinds.CLAIMS, "data", shared)
    await kit.until_gone(c2, kinds.CLAIMS, shared)


async def test_a_claim_that_was_made_again_leaves_the_data_of_the_earlier_one(
    fleet: Fleet, source: Client, c2: Client, shared: str, volume: str
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    annotations = {"annotations": {keys.STORAGE_CLASSES: f"fast={volume}"}}
    await source.patch(kinds.TARGETS, "bad", {"metadata": annotations}, shared)
    await own.assert_connects(source, shared)
    await source.create(kinds.CLAIMS, data_claim(), shared)
    await run_claimant(source, "writes", shared)
    copy = await c2.get(kinds.CLAIMS, "data", shared)
    await source.delete(kinds.PODS, "writes", shared)
    await kit.until_gone(source, kinds.PODS, shared)

    fleet.run("stop", "c1", "agent", "--kill")
    await source.delete(kinds.CLAIMS, "data", shared)
    await kit.until_gone(source, kinds.CLAIMS, shared)
    again = await source.create(kinds.CLAIMS, data_claim(), shared)
    fleet.run("start", "c1", "agent")
    await run_claimant(source, "reads", shared)
    about = "involvedObject.name=reads,reason=NotFollowed"
    await kit.until_event(source, shared, about, "is that of an earlier one")
    kept = await c2.get(kinds.CLAIMS, "data", shared)
    assert objects.uid(kept) == objects.uid(copy)
    assert "deletionTimestamp" not in objects.metadata(kept)

    await c2.delete(kinds.CLAIMS, "data", shared)
    await source.delete(kinds.PODS, "reads", shared)
    await kit.until_gone(c2, kinds.CLAIMS, shared)
    await source.create(kinds.PODS, claimant("anew"), shared)
    anew = await kit.until_one(c2, kinds.CLAIMS, "data", shared, lambda _: True)
    assert objects.labels(anew)[keys.PARENT_UID] == objects.uid(again)
    await source.delete(kinds.PODS, "anew", shared)
    await kit.until_gone(source, kinds.PODS, shared)
    await source.delete(kinds.CLAIMS, "data", shared)
    await kit.until_gone(c2, kinds.CLAIMS, shared)


async def test_a_map_that_cannot_be_read_is_said_on_the_target(
    source: Client, home: str, fleet: Fleet
) -> None:
    await own.put_secret(source, home, own.admin(fleet, "c2"))
    await own.put_target(source, home, own.named())
    annotations = {"annotations": {keys.STORAGE_CLASSES: "fast"}}
    await source.patch(kinds.TARGETS, "bad", {"metadata": annotations}, home)
    target = await kit.until_one(source, kinds.TARGETS, "bad", home, own.is_because("Invalid"))
    assert "'fast' is not a pair" in own.ready(target)["message"]


async def test_a_service_account_is_made_where_that_is_allowed(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, shared)
    rights = {"annotations": {"example.com/role": "admin"}}
    await source.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "builder", **rights}}, shared)
    await source.create(kinds.PODS, kit.pod("builds", serviceAccountName="builder"), shared)
    missing = f'serviceaccount "builder" not found: create it there, in namespace {shared}'
    await kit.until_one(source, kinds.PODS, "builds", shared, lambda p: missing in scheduled(p))
    annotations = {"annotations": {keys.CREATE_SERVICE_ACCOUNTS: "true"}}
    await source.patch(kinds.TARGETS, "bad", {"metadata": annotations}, shared)
    about = "involvedObject.name=builds,reason=NotFollowed"  # it has a candidate there
    await kit.until_event(source, shared, about, "bind ClusterRole vnode-source-service-accounts")
    (granted,) = await c2.list(kinds.SOURCES, shared)
    fleet.kubectl(
        *("c2", "--namespace", shared, "create", "rolebinding", "source-service-accounts"),
        "--clusterrole=vnode-source-service-accounts",
        f"--serviceaccount={shared}:{objects.spec(granted)['serviceAccountName']}",
    )
    await kit.until_one(source, kinds.PODS, "builds", shared, lambda p: kit.phase(p) == "Running")
    made = await c2.get(kinds.SERVICE_ACCOUNTS, "builder", shared)
    assert made["automountServiceAccountToken"] is False
    assert "example.com/role" not in objects.annotations(made)
    await source.delete(kinds.PODS, "builds", shared)
    await kit.until_gone(c2, kinds.SERVICE_ACCOUNTS, shared, field_selector="metadata.name=builder")


async def test_a_pod_that_a_network_policy_selects_waits_until_that_may_follow(
    fleet: Fleet, source: Client, c2: Client, shared: str
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    await own.assert_connects(source, shared)
    deny = {"podSelector": {"matchLabels": {"app": "shut"}}, "policyTypes": ["Ingress", "Egress"]}
    body = {"metadata": {"name": "deny"}, "spec": deny}
    await source.create(kinds.NETWORK_POLICIES, body, shared)
    shut = kit.pod("shut")
    shut["metadata"].setdefault("labels", {})["app"] = "shut"
    await source.create(kinds.PODS, shut, shared)
    about = "involvedObject.name=shut,reason=NotFollowed"
    await kit.until_event(source, shared, about, "bind ClusterRole vnode-source-network-policies")
    assert not await c2.list(kinds.PODS, shared)
    (granted,) = await c2.list(kinds.SOURCES, shared)
    fleet.kubectl(
        *("c2", "--namespace", shared, "create", "rolebinding", "source-network-policies"),
        "--clusterrole=vnode-source-network-policies",
        f"--serviceaccount={shared}:{objects.spec(granted)['serviceAccountName']}",
    )
    await kit.until_one(source, kinds.PODS, "shut", shared, lambda p: kit.phase(p) == "Running")
    (delegate,) = await c2.list(kinds.PODS, shared)
    copy = await c2.get(kinds.NETWORK_POLICIES, "deny", shared)
    selected = objects.spec(copy)["podSelector"]["matchLabels"]
    assert selected.items() <= objects.labels(delegate).items()
    assert keys.PARENT_CLUSTER_NAME in selected
    await source.delete(kinds.PODS, "shut", shared)
    await kit.until_gone(c2, kinds.NETWORK_POLICIES, shared)
    await source.delete(kinds.NETWORK_POLICIES, "deny", shared)


async def test_an_ephemeral_volume_has_a_class_of_the_target(
    fleet: Fleet, source: Client, c2: Client, shared: str, volume: str
) -> None:
    done = own.connect(fleet, shared, "c2")
    assert not done.code, done.err
    annotations = {"annotations": {keys.STORAGE_CLASSES: f"fast={volume}"}}
    await source.patch(kinds.TARGETS, "bad", {"metadata": annotations}, shared)
    await own.assert_connects(source, shared)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": objects.spec(data_claim())}
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    await source.create(kinds.PODS, kit.pod("scratch", volumes=[scratch]), shared)
    await kit.until_one(source, kinds.PODS, "scratch", shared, lambda p: kit.phase(p) == "Running")
    (claim,) = await c2.list(kinds.CLAIMS, shared)
    assert objects.spec(claim)["storageClassName"] == volume
    await source.delete(kinds.PODS, "scratch", shared)
    await kit.until_gone(c2, kinds.CLAIMS, shared)


@pytest.fixture
async def everywhere(fleet: Fleet, source: Client, c3: Client) -> AsyncIterator[None]:
    """Connect c3 by a ClusterTarget that creates namespaces there; delete it after the test."""
    done = vnode(
        *("connect", "--source", fleet.kubeconfig("c1"), "--target", fleet.kubeconfig("c3")),
        *("--cluster-wide", "--name", "everywhere"),
    )
    assert not done.code, done.err
    annotations = {"annotations": {keys.CREATE_NAMESPACES: "true"}}
    await source.patch(kinds.CLUSTER_TARGETS, "everywhere", {"metadata": annotations})
    yield
    await source.delete(kinds.CLUSTER_TARGETS, "everywhere")
    (cluster_source,) = await c3.list(kinds.CLUSTER_SOURCES)
    await c3.delete(kinds.CLUSTER_SOURCES, objects.name(cluster_source))


async def test_a_namespace_is_made_where_that_is_allowed(
    fleet: Fleet, source: Client, c3: Client, everywhere: None
) -> None:
    name = f"made-{uuid.uuid4().hex[:6]}"
    await kit.namespace_for_pods(source, name, elected=True)
    await kit.until_one(
        source, kinds.CLUSTER_TARGETS, "everywhere", "", own.is_because("Connected")
    )
    await source.create(kinds.PODS, kit.pod("refused"), name)
    await kit.until_one(
        source, kinds.PODS, "refused", name, lambda p: "vnode-source-namespaces" in scheduled(p)
    )
    (cluster_source,) = await c3.list(kinds.CLUSTER_SOURCES)
    account = objects.spec(cluster_source)["serviceAccount"]
    fleet.kubectl(
        *("c3", "create", "clusterrolebinding", name, "--clusterrole=vnode-source-namespaces"),
        f"--serviceaccount={account['namespace']}:{account['name']}",
    )
    await source.create(kinds.PODS, kit.pod("runs"), name)
    await kit.until_one(source, kinds.PODS, "runs", name, lambda p: kit.phase(p) == "Running")
    made = await c3.get(kinds.NAMESPACES, name)
    assert keys.PARENT_CLUSTER_NAME in objects.labels(made)
    for pod in ("refused", "runs"):
        await source.delete(kinds.PODS, pod, name)

    await kit.until_gone(source, kinds.PODS, name)
    for client in (source, c3):
        await client.delete(kinds.NAMESPACES, name)

    await c3.delete(kinds.CLUSTER_ROLE_BINDINGS, name)
