"""Sources become rights: the controller runs with the agent's own rights on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests import background, kit
from tests.fleets import SOURCE
from tests.kit import Fleet
from tests.rights import holder, policy_refusal
from vnode.api import kinds, names, objects
from vnode.api.clock import SystemClock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.targets.sources import SourceController

ROLE = "admiralty-source"
VIEWER = "admiralty-cluster-summary-viewer"


@asynccontextmanager
async def running(fleet: Fleet, client: Client) -> AsyncIterator[None]:
    """Yield the controller at work."""
    async with await holder(fleet, SOURCE, client, "vnode", "vnode") as agent:
        namespaces = Informer(agent, kinds.NAMESPACES)
        controller = SourceController(agent, namespaces, "vnode", clock=SystemClock())
        async with background.running(namespaces.run(), controller.run()):
            await controller.synced.wait()
            yield


@pytest.fixture
async def controller(fleet: Fleet, client: Client) -> AsyncIterator[None]:
    """Run the controller until the test ends."""
    async with running(fleet, client):
        yield


async def make(client: Client, namespace: str, spec: Object, *, name: str = "") -> Object:
    """Return a Source named after its namespace unless told otherwise."""
    kind = kinds.SOURCES
    meta = {"name": name or namespace, "namespace": namespace}
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
    return await client.create(kind, body)


async def make_cluster_source(client: Client, name: str, spec: Object) -> Object:
    """Return a ClusterSource."""
    kind = kinds.CLUSTER_SOURCES
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
    return await client.create(kind, {**body, "spec": spec})


async def reason(client: Client, kind: Kind, name: str, namespace: str, wanted: str) -> Object:
    """Return the Ready condition, once it has that reason."""

    def has(obj: Object) -> bool:
        found = objects.condition(obj, "Ready") or {}
        fresh = found.get("observedGeneration") == objects.metadata(obj)["generation"]
        return fresh and found["reason"] == wanted

    obj = await kit.until_one(client, kind, name, namespace, has)
    return objects.condition(obj, "Ready") or {}


def subjects(binding: Object) -> list[str]:
    """Return `Kind namespace/name` of each subject of a binding."""
    return [
        f"{subject['kind']} {objects.join_key(subject.get('namespace', ''), subject['name'])}"
        for subject in binding.get("subjects", ())
    ]


async def gone(client: Client, kind: Kind, name: str, namespace: str | None = None) -> None:
    """Wait until that object is gone."""
    await kit.until_gone(client, kind, namespace, field_selector=f"metadata.name={name}")


@pytest.mark.usefixtures("controller")
async def test_a_source_gets_an_account_and_rights_in_its_namespace(
    client: Client, namespace: str
) -> None:
    await make(client, namespace, {"serviceAccountName": "east", "userName": "eve"})
    ready = await reason(client, kinds.SOURCES, namespace, namespace, "Bound")
    assert ready["status"] == "True"
    account = await client.get(kinds.SERVICE_ACCOUNTS, "east", namespace)
    assert objects.controller_uid(account)
    viewer_name = names.source_viewer_binding(namespace, namespace)
    local = await client.get(kinds.ROLE_BINDINGS, names.source_binding(namespace), namespace)
    viewer = await client.get(kinds.CLUSTER_ROLE_BINDINGS, viewer_name)
    assert (local["roleRef"]["name"], viewer["roleRef"]["name"]) == (ROLE, VIEWER)
    assert subjects(local) == [f"ServiceAccount {namespace}/east", "User eve"]
    assert subjects(viewer) == subjects(local)
    assert objects.controller_uid(local)
    assert not objects.controller_uid(viewer)


@pytest.mark.usefixtures("controller")
async def test_a_cluster_source_gets_its_account_in_the_namespace_that_it_names(
    client: Client, namespace: str
) -> None:
    spec = {"serviceAccount": {"name": "east", "namespace": namespace}}
    await make_cluster_source(client, namespace, spec)
    await reason(client, kinds.CLUSTER_SOURCES, namespace, "", "Bound")
    await client.get(kinds.SERVICE_ACCOUNTS, "east", namespace)
    binding = names.cluster_source_binding(namespace)
    wide = await client.get(kinds.CLUSTER_ROLE_BINDINGS, binding)
    assert subjects(wide) == [f"ServiceAccount {namespace}/east"]
    await client.delete(kinds.CLUSTER_SOURCES, namespace)
    await gone(client, kinds.CLUSTER_ROLE_BINDINGS, binding)
    await gone(client, kinds.CLUSTER_ROLE_BINDINGS, names.cluster_source_viewer_binding(namespace))


@pytest.mark.usefixtures("controller")
async def test_an_account_waits_for_its_namespace(client: Client, namespace: str) -> None:
    later = f"{namespace}-later"
    spec = {"serviceAccount": {"name": "east", "namespace": later}}
    await make_cluster_source(client, namespace, spec)
    ready = await reason(client, kinds.CLUSTER_SOURCES, namespace, "", "NamespaceNotFound")
    assert later in ready["message"]
    assert "create" in ready["message"]
    await kit.new_namespace(client, later)
    await reason(client, kinds.CLUSTER_SOURCES, namespace, "", "Bound")
    await client.delete(kinds.CLUSTER_SOURCES, namespace)


@pytest.mark.usefixtures("controller")
async def test_a_cluster_source_without_a_namespace_for_its_account_is_told(
    client: Client, namespace: str
) -> None:
    await make_cluster_source(client, namespace, {"serviceAccount": {"name": "east"}})
    ready = await reason(client, kinds.CLUSTER_SOURCES, namespace, "", "Invalid")
    assert "spec.serviceAccount.namespace" in ready["message"]
    await client.delete(kinds.CLUSTER_SOURCES, namespace)


@pytest.mark.usefixtures("controller")
async def test_a_source_that_names_nobody_any_more_loses_its_bindings(
    client: Client, namespace: str
) -> None:
    await make(client, namespace, {"userName": "eve"})
    await reason(client, kinds.SOURCES, namespace, namespace, "Bound")
    await client.patch(kinds.SOURCES, namespace, {"spec": {"userName": None}}, namespace)
    await reason(client, kinds.SOURCES, namespace, namespace, "NoSubject")
    await gone(client, kinds.ROLE_BINDINGS, names.source_binding(namespace), namespace)
    viewer = names.source_viewer_binding(namespace, namespace)
    await gone(client, kinds.CLUSTER_ROLE_BINDINGS, viewer)


@pytest.mark.usefixtures("controller")
async def test_changed_and_deleted_bindings_and_accounts_come_back(
    client: Client, namespace: str
) -> None:
    await make(client, namespace, {"serviceAccountName": "east"})
    await reason(client, kinds.SOURCES, namespace, namespace, "Bound")
    name = names.source_binding(namespace)
    await client.patch(kinds.ROLE_BINDINGS, name, {"subjects": []}, namespace)
    await kit.until_one(client, kinds.ROLE_BINDINGS, name, namespace, lambda b: bool(subjects(b)))
    await client.delete(kinds.ROLE_BINDINGS, name, namespace)
    await kit.until_one(client, kinds.ROLE_BINDINGS, name, namespace, lambda b: bool(subjects(b)))
    await client.delete(kinds.SERVICE_ACCOUNTS, "east", namespace)
    await kit.until_one(client, kinds.SERVICE_ACCOUNTS, "east", namespace, lambda _a: True)


async def test_another_role_under_our_name_stays_until_somebody_deletes_it(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    name = names.source_binding(namespace)
    foreign = {
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "view",
        },
        "subjects": [],
    }
    await client.create(kinds.ROLE_BINDINGS, foreign, namespace)
    async with await holder(fleet, SOURCE, client, "vnode", "vnode") as agent:
        await policy_refusal(agent, "DELETE", kinds.ROLE_BINDINGS.path(namespace, name))

    await make(client, namespace, {"userName": "eve"})
    async with running(fleet, client):
        ready = await reason(client, kinds.SOURCES, namespace, namespace, "Forbidden")
        assert ready["message"].endswith("delete it yourself")
        await client.delete(kinds.ROLE_BINDINGS, name, namespace)
        await reason(client, kinds.SOURCES, namespace, namespace, "Bound")

    binding = await client.get(kinds.ROLE_BINDINGS, name, namespace)
    assert binding["roleRef"]["name"] == ROLE


async def test_a_source_deleted_while_no_agent_ran_leaves_nothing_behind(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    await make(client, namespace, {"userName": "eve"})
    viewer = names.source_viewer_binding(namespace, namespace)
    async with running(fleet, client):
        await reason(client, kinds.SOURCES, namespace, namespace, "Bound")

    await client.delete(kinds.SOURCES, namespace, namespace)
    assert await client.get(kinds.CLUSTER_ROLE_BINDINGS, viewer)
    async with running(fleet, client):
        await gone(client, kinds.CLUSTER_ROLE_BINDINGS, viewer)


@pytest.mark.usefixtures("controller")
async def test_two_sources_may_name_the_same_account(client: Client, namespace: str) -> None:
    for name in ("one", "two"):
        await make(client, namespace, {"serviceAccountName": "shared"}, name=name)

    for name in ("one", "two"):
        await reason(client, kinds.SOURCES, name, namespace, "Bound")

    await client.delete(kinds.SOURCES, "one", namespace)
    await gone(client, kinds.CLUSTER_ROLE_BINDINGS, names.source_viewer_binding(namespace, "one"))
    assert await client.get(kinds.ROLE_BINDINGS, names.source_binding("two"), namespace)


@pytest.mark.usefixtures("controller")
async def test_nothing_is_written_once_all_is_well(client: Client, namespace: str) -> None:
    await make(client, namespace, {"userName": "eve"})
    await reason(client, kinds.SOURCES, namespace, namespace, "Bound")
    name = names.source_binding(namespace)
    before = await client.get(kinds.ROLE_BINDINGS, name, namespace)
    note = {"metadata": {"annotations": {"somebody": "else"}}}
    await client.patch(kinds.SOURCES, namespace, note, namespace)
    await make(client, namespace, {"userName": "eve"}, name="next")
    await reason(client, kinds.SOURCES, "next", namespace, "Bound")
    after = await client.get(kinds.ROLE_BINDINGS, name, namespace)
    assert objects.resource_version(before) == objects.resource_version(after)
