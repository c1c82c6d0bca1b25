"""A virtual node is what its target is: capacity, health, and its end."""

from __future__ import annotations

import asyncio

import pytest

from tests import kit, served
from tests.e2e.test_changes import report_resources, until_allocated
from tests.e2e.test_overrides import delegate_of
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import ApiError
from vnode.api.objects import Object
from vnode.kube.client import Client

C2 = names.virtual_node("default", "c2")
C3 = names.virtual_node("default", "c3")


async def test_a_node_offers_what_its_target_has(source: Client, c2: Client) -> None:
    node = await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)
    real = await c2.list(kinds.NODES)
    assert len(real) == 3
    cpu = sum(int(objects.status(one)["allocatable"]["cpu"]) for one in real)
    assert objects.status(node)["allocatable"]["cpu"] == str(cpu)
    assert keys.PROVIDER_TAINT in objects.spec(node)["taints"]
    assert objects.labels(node)[keys.TARGET_NAME] == "c2"


async def test_a_cordoned_node_of_the_target_offers_nothing(source: Client, c2: Client) -> None:
    node = await kit.until_one(source, kinds.NODES, C2, "", kit.is_ready)
    before = int(objects.status(node)["allocatable"]["cpu"])
    one = objects.name((await c2.list(kinds.NODES))[0])
    await c2.patch(kinds.NODES, one, {"spec": {"unschedulable": True}})
    await kit.until_one(
        source,
        kinds.NODES,
        C2,
        "",
        lambda n: int(objects.status(n)["allocatable"]["cpu"]) == before * 2 // 3,
    )
    await c2.patch(kinds.NODES, one, {"spec": {"unschedulable": None}})
    await kit.until_one(
        source,
        kinds.NODES,
        C2,
        "",
        lambda n: int(objects.status(n)["allocatable"]["cpu"]) == before,
    )


RESIZE = "InPlacePodLevelResourcesVerticalScaling"


async def test_a_node_declares_what_all_nodes_of_its_target_do(source: Client, c2: Client) -> None:
    await served.need_declared_features(source, c2)

    async def declare(nodes: list[str], features: list[str] | None) -> None:
        handlers = [{"name": "", "features": {"userNamespaces": True}}] if features else None
        status = {"declaredFeatures": features, "runtimeHandlers": handlers}
        for name in nodes:
            await c2.patch(kinds.NODES, name, {"status": status}, subresource="status")

    async def until_declared(is_there: bool) -> Object:
        def shows(node: Object) -> bool:
            declared = objects.status(node).get("declaredFeatures") or []
            return (RESIZE in declared) == is_there

        return await kit.until_one(source, kinds.NODES, C2, "", shows)

    first, *others = [objects.name(node) for node in await c2.list(kinds.NODES)]
    await declare(others, [RESIZE])
    await declare([first], ["Another", RESIZE])
    node = await until_declared(True)
    assert objects.status(node)["declaredFeatures"] == ["ExtendWebSocketsToKubelet", RESIZE]
    assert objects.status(node)["runtimeHandlers"][0]["features"]["userNamespaces"] is True
    resources = {"requests": {"cpu": "20m"}, "limits": {"cpu": "40m"}}
    await source.create(kinds.PODS, kit.pod_in("c2", "whole", resources=resources), "default")
    delegate = await delegate_of(source, c2, "whole")
    await report_resources(c2, delegate, "10m")  # kwok reports none
    await until_allocated(source, "whole", "10m")

    async def resize(cpu: str) -> None:
        body: Object = {"spec": {"resources": {"requests": {"cpu": cpu}}}}
        await source.patch(
            kinds.PODS, "whole", body, "default", subresource="resize", strategic=True
        )

    async def resize_for_seconds() -> None:
        # The API server judges by a watch of nodes of its own, which may be a moment behind ours.
        for cpu in range(10, 30):
            await resize(f"{cpu}m")
            await asyncio.sleep(0.1)

    await resize("30m")
    await declare([first], None)
    await until_declared(False)
    with pytest.raises(ApiError, match=RESIZE):
        await resize_for_seconds()

    await declare(others, None)


async def test_a_deleted_node_is_created_again(source: Client) -> None:
    node = await kit.until_one(source, kinds.NODES, C3, "", kit.is_ready)
    await source.delete(kinds.NODES, C3)
    await kit.until_one(
        source,
        kinds.NODES,
        C3,
        "",
        lambda n: objects.uid(n) != objects.uid(node) and kit.is_ready(n),
    )


async def test_labels_and_conditions_of_others_stay(source: Client) -> None:
    await source.patch(kinds.NODES, C3, {"metadata": {"labels": {"mine": "yes"}}})
    other = {"type": "CniReady", "status": "True", "reason": "Cni", "message": ""}
    node = await source.get(kinds.NODES, C3)
    conditions = [*objects.status(node)["conditions"], other]
    await source.patch(
        kinds.NODES, C3, {"status": {"conditions": conditions}}, subresource="status"
    )
    await source.patch(kinds.TARGETS, "c3", {"spec": {"excludedLabelsRegexp": "^x"}}, "default")
    await kit.until_one(source, kinds.NODES, C3, "", kit.is_ready)
    node = await source.get(kinds.NODES, C3)
    assert objects.labels(node)["mine"] == "yes"
    assert objects.condition(node, "CniReady") is not None


async def test_a_lost_target_is_not_ready_and_says_why_and_returns(
    source: Client, fleet: Fleet
) -> None:
    fleet.run("partition", "c3")
    try:
        node = await kit.until_one(source, kinds.NODES, C3, "", lambda n: kit.is_ready(n, "False"))
        ready = objects.condition(node, "Ready")
        assert ready is not None
        assert ready["reason"] == "Unreachable"
        annotations = {keys.ELECT: ""}
        await source.create(kinds.PODS, kit.pod("meanwhile", annotations=annotations), "default")
        proxy = await kit.until_running(source, "meanwhile")
        assert objects.spec(proxy)["nodeName"] == C2
        target = await source.get(kinds.TARGETS, "c3", "default")
        assert not kit.is_ready(target)
    finally:
        fleet.run("heal", "c3")

    await kit.until_one(source, kinds.NODES, C3, "", kit.is_ready)
    await kit.until_one(source, kinds.TARGETS, "c3", "default", kit.is_ready)
