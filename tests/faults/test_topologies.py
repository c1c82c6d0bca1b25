"""Clusters that are each other's targets, their own, or a target twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests import kit
from tests.e2e import own_targets as own
from tests.fleets import started, vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Yield a ring of two clusters: each is the other's target."""
    words = ("c1", "c2", "--nodes", "1", "--agents", "--connect", "c1:c2", "--connect", "c2:c1")
    with started(tmp_path_factory, *words, sources=("c1", "c2")) as there:
        yield there


async def runs(client: Client, name: str, *, target: str = "") -> Object:
    """Return a pod that is elected, and runs, in the target if one is named."""
    annotations = {keys.ELECT: ""}
    if target:
        annotations[keys.PROXY_CONSTRAINTS] = f"nodeSelector: {{{keys.TARGET_NAME}: {target}}}"

    await client.create(kinds.PODS, kit.pod(name, annotations=annotations), "default")
    return await kit.until_running(client, name)


async def all_gone(*clients: Client) -> None:
    for client in clients:
        await kit.until_gone(client, kinds.PODS, "default")
        await kit.until_gone(client, kinds.POD_CHAPERONS, "default")


async def test_in_a_ring_pods_go_one_step_both_ways_and_no_further(
    fleet: Fleet, c1: Client, c2: Client
) -> None:
    for client in (c1, c2):  # also where the namespace elects all of its pods
        annotations = {"metadata": {"annotations": {keys.ELECT: ""}}}
        await client.patch(kinds.NAMESPACES, "default", annotations)

    there, back = await runs(c1, "there"), await runs(c2, "back")
    assert objects.spec(there)["nodeName"] == names.virtual_node("default", "c2")
    assert objects.spec(back)["nodeName"] == names.virtual_node("default", "c1")
    for client, parent, node in ((c2, there, "c2-node-0"), (c1, back, "c1-node-0")):
        selector = f"{keys.PARENT_UID}={objects.uid(parent)}"
        (delegate,) = await client.list(kinds.PODS, "default", label_selector=selector)
        assert objects.spec(delegate)["nodeName"] == node

    assert "hello from a pod in c2" in fleet.kubectl("c1", "logs", "there")
    assert "hello from a pod in c1" in fleet.kubectl("c2", "logs", "back")
    for client, name in ((c1, "there"), (c2, "back")):
        await client.patch(
            kinds.NAMESPACES, "default", {"metadata": {"annotations": {keys.ELECT: None}}}
        )
        await client.delete(kinds.PODS, name, "default")

    await all_gone(c1, c2)


async def test_a_cluster_may_be_its_own_target(fleet: Fleet, c1: Client) -> None:
    config = (
        "--source",
        fleet.kubeconfig("c1"),
        "--target",
        fleet.kubeconfig("c1"),
        "--cluster-name",
        "c1",
    )
    with fleet.self_targets("c1"):
        done = vnode("connect", *config, "--namespace", "default", "--name", "itself")
        assert not done.code, done.err
        await kit.until_one(c1, kinds.TARGETS, "itself", "default", own.is_because("Connected"))
        pod = await runs(c1, "home", target="itself")
        assert objects.spec(pod)["nodeName"] == names.virtual_node("default", "itself")
        assert "hello from a pod in c1" in fleet.kubectl("c1", "logs", "home")
        await c1.delete(kinds.PODS, "home", "default")
        await all_gone(c1)
        await c1.delete(kinds.TARGETS, "itself", "default")
        await kit.until_gone(
            c1,
            kinds.NODES,
            field_selector=f"metadata.name={names.virtual_node('default', 'itself')}",
        )


async def test_one_target_under_two_names_runs_each_pod_once(
    fleet: Fleet, c1: Client, c2: Client
) -> None:
    config = (
        "--source",
        fleet.kubeconfig("c1"),
        "--target",
        fleet.kubeconfig("c2"),
        "--cluster-name",
        "c1",
    )
    done = vnode("connect", *config, "--namespace", "default", "--name", "again")
    assert not done.code, done.err
    await kit.until_one(c1, kinds.TARGETS, "again", "default", own.is_because("Connected"))
    by_name = {name: await runs(c1, f"by-{name}", target=name) for name in ("c2", "again")}
    for name, pod in by_name.items():
        assert objects.spec(pod)["nodeName"] == names.virtual_node("default", name)
        found = await c2.list(
            kinds.PODS, "default", label_selector=f"{keys.PARENT_UID}={objects.uid(pod)}"
        )
        assert [kit.phase(delegate) for delegate in found] == ["Running"]

    await c1.create(kinds.DEPLOYMENTS, kit.deployment("both", 10, kit.pod("both")), "default")
    await kit.until_pods(c1, "both", lambda all_: kit.running(all_, 10))
    found = await c2.list(kinds.PODS, "default", label_selector=f"{keys.PREFIX}app=both")
    parents = [objects.labels(pod)[keys.PARENT_UID] for pod in found]
    assert len(parents) == len(set(parents)) == 10
    await c1.delete(kinds.DEPLOYMENTS, "both", "default", propagation="Background")
    for name in by_name:
        await c1.delete(kinds.PODS, f"by-{name}", "default")

    await all_gone(c1, c2)
    await c1.delete(kinds.TARGETS, "again", "default")
