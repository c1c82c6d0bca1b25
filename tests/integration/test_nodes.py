"""Virtual nodes on a real control plane, whose node lifecycle controller has its say too."""

from __future__ import annotations

import asyncio

from tests import kit
from tests.integration.kept_nodes import (
    SUMMARY,
    FixedTargets,
    capacity,
    connected,
    make_link,
    ready,
    running,
    show,
    taints,
    target,
    until,
)
from vnode.api import keys, kinds, node_labels, objects
from vnode.api.clock import SystemClock
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links

__all__ = ["target"]


async def test_a_node_shows_its_target(client: Client, target: TargetKey) -> None:
    links = Links()
    link = make_link(target, client, lambda text: text.startswith("secret/"))
    links.add(link)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")
        show(link, SUMMARY)
        node = await until(client, target, lambda node: "cpu" in capacity(node))

    labels, status = objects.labels(node), objects.status(node)
    assert labels["type"] == "virtual-kubelet"
    assert "topology.kubernetes.io/region" not in labels
    assert node_labels.of_node(node)["topology.kubernetes.io/region"] == "r1"
    assert labels["example.com/disk"] == "fast"
    assert labels[keys.PROVIDER_LABEL] == keys.PROVIDER
    assert labels[keys.TARGET_NAME] == target.name
    assert "secret/thing" not in labels
    assert objects.annotations(node)[keys.KUBELET_PORT] == "10251"
    assert keys.PROVIDER_TAINT in taints(node)
    assert status["allocatable"] == {"cpu": "7500m", "memory": "15Gi", "pods": "220"}
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10251}}
    assert status["addresses"] == [{"type": "InternalIP", "address": "10.1.2.3"}]
    assert status["nodeInfo"]["kubeletVersion"].startswith("v1.")
    lease = await client.get(kinds.LEASES, target.node_name, "kube-node-lease")
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["uid"] == objects.uid(node)


async def test_a_lost_target_makes_its_node_not_ready_with_the_reason(
    client: Client, target: TargetKey
) -> None:
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")
        link.set_health(LinkHealth(False, "Unreachable", "refused", SystemClock().now()))
        node = await until(client, target, lambda node: ready(node) == "False")
        condition = objects.condition(node, "Ready") or {}
        assert (condition["reason"], condition["message"]) == ("Unreachable", "refused")
        assert capacity(node)["cpu"] == "8"
        await until(
            client,
            target,
            lambda node: any(
                taint["key"] == "node.kubernetes.io/not-ready" for taint in taints(node)
            ),
        )
        link.set_health(LinkHealth(True, "Connected", "it answers", SystemClock().now()))
        await until(
            client,
            target,
            lambda node: ready(node) == "True" and taints(node) == [keys.PROVIDER_TAINT],
        )


async def test_what_others_write_on_a_node_stays(client: Client, target: TargetKey) -> None:
    links, link = await connected(client, target)
    name = target.node_name
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")
        condition = {"type": "Problem", "status": "True", "reason": "Test", "message": "theirs"}
        await client.apply(
            kinds.NODES,
            {"metadata": {"name": name}, "status": {"conditions": [condition]}},
            subresource="status",
            manager="someone",
        )
        taint = {"key": "theirs", "value": "x", "effect": "NoSchedule"}
        await client.patch(
            kinds.NODES,
            name,
            {
                "metadata": {"labels": {"mine": "yes", "type": "edited"}},
                "spec": {"taints": [taint], "unschedulable": True},
            },
        )
        node = await until(client, target, lambda node: keys.PROVIDER_TAINT in taints(node))
        assert taint in taints(node)
        changed = {**SUMMARY, "metadata": {"name": keys.SUMMARY_NAME, "labels": {"new": "1"}}}
        show(link, changed)
        node = await until(client, target, lambda node: "new" in objects.labels(node))

    assert objects.labels(node)["mine"] == "yes"
    assert objects.labels(node)["type"] == "virtual-kubelet"
    assert "example.com/disk" not in objects.labels(node)
    assert objects.spec(node)["unschedulable"] is True
    assert (objects.condition(node, "Problem") or {})["message"] == "theirs"


async def test_a_deleted_node_is_made_again_with_its_lease(
    client: Client, target: TargetKey
) -> None:
    links, _link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        old = await until(client, target, lambda node: ready(node) == "True")
        await client.delete(kinds.NODES, target.node_name)
        new = await until(
            client,
            target,
            lambda node: objects.uid(node) != objects.uid(old) and ready(node) == "True",
        )
        await kit.until_one(
            client,
            kinds.LEASES,
            target.node_name,
            "kube-node-lease",
            lambda lease: lease["metadata"]["ownerReferences"][0]["uid"] == objects.uid(new),
        )


async def test_a_node_goes_with_its_target_and_leftovers_go_at_the_start(
    client: Client, target: TargetKey
) -> None:
    links, link = await connected(client, target)
    targets = FixedTargets(target)
    async with running(client, links, targets):
        await until(client, target, lambda node: ready(node) == "True")
        targets.set()
        links.remove(link)
        await kit.until_gone(
            client, kinds.NODES, field_selector=f"metadata.name={target.node_name}"
        )
        targets.set(target)
        links.add(link)
        await until(client, target, lambda node: ready(node) == "True")

    async with running(client, Links(), FixedTargets()):
        await kit.until_gone(
            client, kinds.NODES, field_selector=f"metadata.name={target.node_name}"
        )


async def test_nodes_that_we_did_not_make_are_left_alone(client: Client) -> None:
    stranger = {"metadata": {"name": "stranger", "labels": {keys.PROVIDER_LABEL: keys.PROVIDER}}}
    await client.create(kinds.NODES, stranger)
    async with running(client, Links(), FixedTargets()) as controller:
        controller.refresh("stranger")
        await asyncio.sleep(0.3)
        await client.get(kinds.NODES, "stranger")

    await client.delete(kinds.NODES, "stranger")


async def test_a_node_that_is_right_is_not_written(client: Client, target: TargetKey) -> None:
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)) as controller:
        await until(client, target, lambda node: ready(node) == "True")
        await asyncio.sleep(1)
        before = await client.get(kinds.NODES, target.node_name)
        for _ in range(20):
            show(link, SUMMARY)
            controller.refresh(target.node_name)
            await asyncio.sleep(0.02)

        after = await client.get(kinds.NODES, target.node_name)

    assert objects.resource_version(before) == objects.resource_version(after)


async def test_several_sizes_of_huge_pages_are_shown_together(
    client: Client, target: TargetKey
) -> None:
    links, link = await connected(client, target)
    pages = {"cpu": "1", "hugepages-2Mi": "64Mi", "hugepages-1Gi": "2Gi"}
    show(link, {**SUMMARY, "capacity": pages, "allocatable": pages})
    async with running(client, links, FixedTargets(target)):
        node = await until(client, target, lambda node: "hugepages-1Gi" in capacity(node))

    assert objects.status(node)["allocatable"] == pages
