"""MultiKueue's clusters, kept by the agent, as Kueue itself sees them."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from hack.fleetlib.fleet import LocalFleet
from tests import inventory, kit
from tests.kit import Fleet
from tests.kueue.installation import CREDENTIAL_FILE, JOBSET, KUEUE, NAMESPACE
from vnode.api import keys, kinds, objects
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kueue.multikueue_deciding import WorkerCluster

CONFIGS, CLUSTERS = kinds.MULTIKUEUE_CONFIGS, kinds.MULTIKUEUE_CLUSTERS
C2, C3 = (WorkerCluster(TargetKey("default", name)).name for name in ("c2", "c3"))


@pytest.fixture
async def credentials(fleet: Fleet, source: Client) -> AsyncIterator[None]:
    """Have the kinds in c3 that Kueue watches, and give it a kubeconfig of an administrator."""
    for controller in (KUEUE, JOBSET):
        controller.serve_kinds(fleet, "c3")

    text = base64.b64encode(fleet.kubeconfig("c3").read_bytes()).decode()
    secret = {"metadata": {"name": C3}, "data": {"kubeconfig": text}}
    await source.create(kinds.SECRETS, secret, NAMESPACE)
    yield
    await source.delete(kinds.SECRETS, C3, NAMESPACE)
    for controller in (KUEUE, JOBSET):
        controller.remove_kinds(fleet, "c3")


async def test_clusters_are_those_of_the_list_and_kueue_connects_to_what_has_a_secret(
    source: Client, credentials: None
) -> None:
    config = await kit.until_one(source, CONFIGS, "listed", "", lambda _config: True)
    assert objects.spec(config)["clusters"] == [C3, C2]
    without = await kit.until_one(
        source, CLUSTERS, C2, "", lambda obj: kit.has_condition(obj, "Active", "False")
    )
    assert (objects.condition(without, "Active") or {})["reason"] == "BadKubeConfig"
    await kit.until_one(source, CLUSTERS, C3, "", lambda obj: kit.has_condition(obj, "Active"))
    check = {
        "metadata": {"name": "elsewhere"},
        "spec": {
            "controllerName": f"{kinds.KUEUE}/multikueue",
            "parameters": {"apiGroup": kinds.KUEUE, "kind": CONFIGS.kind, "name": "listed"},
        },
    }
    await source.create(kinds.ADMISSION_CHECKS, check)
    await kit.until_one(
        source,
        kinds.ADMISSION_CHECKS,
        "elsewhere",
        "",
        lambda obj: kit.has_condition(obj, "Active"),
    )


async def test_kueue_connects_to_the_cluster_of_a_profile(
    fleet: Fleet, source: Client, credentials: None
) -> None:
    config = yaml.safe_load(fleet.kubeconfig("c3").read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {
            "clientCertificateData": base64.b64decode(user["client-certificate-data"]).decode(),
            "clientKeyData": base64.b64decode(user["client-key-data"]).decode(),
        },
    }
    folder = Path(LocalFleet(fleet.folder).site("c1").file(KUEUE.program))
    (folder / CREDENTIAL_FILE).write_text(json.dumps(credential))
    access = {"accessProviders": [{"name": "file", "cluster": cluster}]}
    await inventory.add_profile(source, NAMESPACE, "worker-profile", access)
    spec = {"clusterProfile": {"name": "worker-profile"}}
    target = {"metadata": {"name": "worker"}, "spec": spec}
    await source.create(kinds.TARGETS, target, NAMESPACE)
    name = WorkerCluster(TargetKey(NAMESPACE, "worker")).name
    found = await kit.until_one(
        source,
        CLUSTERS,
        name,
        "",
        lambda obj: kit.has_condition(obj, "Active"),
    )
    assert objects.spec(found)["clusterSource"] == {"clusterProfileRef": {"name": "worker-profile"}}
    await source.delete(kinds.TARGETS, "worker", NAMESPACE)
    await kit.until(source, CLUSTERS, lambda all_: name not in all_)


async def test_clusters_of_a_set_come_and_go_with_its_targets(source: Client) -> None:
    async def add(name: str) -> None:
        metadata = {"name": name, "labels": {keys.TARGET_SET: "clouds"}}
        spec = {"kubeconfigSecret": {"name": "absent", "namespace": "default"}}
        await source.create(kinds.CLUSTER_TARGETS, {"metadata": metadata, "spec": spec})

    async def until_named(*clusters: str) -> None:
        await kit.until_one(
            source,
            CONFIGS,
            "of-set",
            "",
            lambda config: objects.spec(config)["clusters"] == [*clusters],
        )

    for name in ("paris", "berlin"):
        await add(name)

    await until_named("berlin", "paris")
    await source.delete(kinds.CLUSTER_TARGETS, "berlin")
    await until_named("paris")
    await kit.until(source, CLUSTERS, lambda all_: "berlin" not in all_ and "paris" in all_)
    await source.delete(kinds.CLUSTER_TARGETS, "paris")
    await kit.until(source, CONFIGS, lambda all_: "of-set" not in all_ and "listed" in all_)
    await kit.until(source, CLUSTERS, lambda all_: "paris" not in all_)
