"""MultiKueue's clusters, kept by the agent, as Kueue itself sees them."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

import pytest

from tests import kit
from tests.kit import Fleet
from tests.kueue.installation import JOBSET, KUEUE, NAMESPACE
from vnode.api import keys, kinds, objects
from vnode.kube.client import Client

CONFIGS, CLUSTERS = kinds.MULTIKUEUE_CONFIGS, kinds.MULTIKUEUE_CLUSTERS


@pytest.fixture
async def credentials(fleet: Fleet, source: Client) -> AsyncIterator[None]:
    """Have the kinds in c3 that Kueue watches, and give it a kubeconfig of an administrator."""
    for controller in (KUEUE, JOBSET):
        controller.serve_kinds(fleet, "c3")

    text = base64.b64encode(fleet.kubeconfig("c3").read_bytes()).decode()
    secret = {"metadata": {"name": "default-c3"}, "data": {"kubeconfig": text}}
    await source.create(kinds.SECRETS, secret, NAMESPACE)
    yield
    await source.delete(kinds.SECRETS, "default-c3", NAMESPACE)
    for controller in (KUEUE, JOBSET):
        controller.remove_kinds(fleet, "c3")


async def test_clusters_are_those_of_the_list_and_kueue_connects_to_what_has_a_secret(
    source: Client, credentials: None
) -> None:
    config = await kit.until_one(source, CONFIGS, "listed", "", lambda _config: True)
    assert objects.spec(config)["clusters"] == ["default-c3", "default-c2"]
    without = await kit.until_one(
        source, CLUSTERS, "default-c2", "", lambda obj: kit.has_condition(obj, "Active", "False")
    )
    assert (objects.condition(without, "Active") or {})["reason"] == "BadKubeConfig"
    await kit.until_one(
        source, CLUSTERS, "default-c3", "", lambda obj: kit.has_condition(obj, "Active")
    )
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
