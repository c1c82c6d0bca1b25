"""The kinds of the API, as a real API server serves them."""

from __future__ import annotations

import pytest

from tests.fleets import SOURCE
from tests.integration.custom_objects import create
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

SHORT = {
    kinds.TARGETS: "tg",
    kinds.CLUSTER_TARGETS: "ctg",
    kinds.SOURCES: "src",
    kinds.CLUSTER_SOURCES: "csrc",
    kinds.POD_CHAPERONS: "chap",
    kinds.CLUSTER_SUMMARIES: "mcsum",
    kinds.OVERRIDE_POLICIES: "ovpol",
    kinds.CLUSTER_OVERRIDE_POLICIES: "covpol",
    kinds.PLACEMENT_POLICIES: "plpol",
    kinds.CLUSTER_PLACEMENT_POLICIES: "cplpol",
}
WITH_CONDITIONS = [
    kinds.TARGETS,
    kinds.CLUSTER_TARGETS,
    kinds.SOURCES,
    kinds.CLUSTER_SOURCES,
]
SECRET = {"name": "s", "key": "k", "context": "c"}


@pytest.mark.parametrize("kind", SHORT, ids=lambda kind: kind.plural)
async def test_scope_names_and_status_are_those_of_the_contract(client: Client, kind: Kind) -> None:
    served = await client.request("GET", f"/apis/{kind.api_version}")
    resources = {resource["name"]: resource for resource in served["resources"]}
    assert resources[kind.plural]["kind"] == kind.kind
    assert resources[kind.plural]["namespaced"] is kind.namespaced
    assert resources[kind.plural]["shortNames"] == [SHORT[kind]]
    assert f"{kind.plural}/status" in resources


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        (kinds.TARGETS, {}),
        (kinds.TARGETS, {"spec": {}}),
        (kinds.TARGETS, {"spec": {"self": True, "kubeconfigSecret": SECRET}}),
        (kinds.TARGETS, {"spec": {"kubeconfigSecret": {}, "excludedLabelsRegexp": "("}}),
        (kinds.CLUSTER_TARGETS, {"spec": {"kubeconfigSecret": {**SECRET, "namespace": "n"}}}),
        (kinds.SOURCES, {"spec": {"userName": "u", "serviceAccountName": "s"}}),
        (kinds.SOURCES, {}),
        (kinds.CLUSTER_SOURCES, {"spec": {"serviceAccount": {"name": "n"}}}),
        (kinds.CLUSTER_SOURCES, {"spec": {"userName": "u"}, "status": {}}),
        (kinds.CLUSTER_SUMMARIES, {"capacity": {"cpu": 4, "memory": "1Gi"}, "allocatable": {}}),
        (kinds.POD_CHAPERONS, {"spec": {"containers": [{"name": "c", "newField": [1]}]}}),
        (kinds.POD_CHAPERONS, {}),
    ],
)
async def test_what_admiralty_accepts_is_accepted_and_kept(
    client: Client, namespace: str, kind: Kind, obj: Object
) -> None:
    created = await create(client, kind, namespace, **obj)
    for field in obj.keys() - {"status"}:
        assert created[field] == obj[field]


@pytest.mark.parametrize("kind", WITH_CONDITIONS, ids=lambda kind: kind.plural)
async def test_conditions_are_a_part_of_status_that_does_not_touch_the_spec(
    client: Client, namespace: str, kind: Kind
) -> None:
    await create(client, kind, namespace, spec={"userName": "u"})
    conditions = [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Invalid",
            "message": "do this",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ]
    body = {"status": {"conditions": conditions}, "spec": {"userName": "other"}}
    where = namespace if kind.namespaced else None
    patched = await client.patch(kind, namespace, body, where, subresource="status")
    assert objects.status(patched)["conditions"] == conditions
    assert objects.spec(patched).get("userName") != "other"


async def test_a_summary_carries_annotations_and_labels(client: Client, namespace: str) -> None:
    annotations = {"annotations": {"vnode.dev/free": "{}"}, "labels": {"zone": "z"}}
    await create(client, kinds.CLUSTER_SUMMARIES, namespace, capacity={"pods": 110})
    patched = await client.patch(kinds.CLUSTER_SUMMARIES, namespace, {"metadata": annotations})
    assert objects.annotations(patched) == annotations["annotations"]
    assert objects.labels(patched) == annotations["labels"]


async def test_kubectl_shows_readiness_and_reservation(
    fleet: Fleet, client: Client, namespace: str
) -> None:
    await create(client, kinds.TARGETS, namespace, spec={"self": True})
    await create(client, kinds.POD_CHAPERONS, namespace)
    marks = {
        "multicluster.admiralty.io/is-reserved": "true",
        "multicluster.admiralty.io/is-allowed": "true",
    }
    patch = {"metadata": {"annotations": marks}}
    await client.patch(kinds.POD_CHAPERONS, namespace, patch, namespace)
    status = {"status": {"phase": "Running", "podIP": "192.0.2.7"}}
    await client.patch(kinds.POD_CHAPERONS, namespace, status, namespace, subresource="status")

    targets = fleet.kubectl(SOURCE, "get", "tg", "-n", namespace).split("\n")
    assert targets[0].split() == ["NAME", "READY", "REASON", "AGE"]
    header, row = fleet.kubectl(SOURCE, "get", "chap", "-n", namespace).strip().split("\n")
    assert header.split() == ["NAME", "RESERVED", "ALLOWED", "PHASE", "SOURCE", "AGE"]
    assert row.split()[:4] == [namespace, "true", "true", "Running"]
