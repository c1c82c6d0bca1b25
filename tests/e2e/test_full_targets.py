"""Pods for which no target has room: who sees them, who may make some, and what is counted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests import kit
from vnode.api import keys, kinds, names, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.scheduling import reported

UNIT = "example.com/unit"
PRIORITIES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)

Offer = Callable[[Client, str, int], Awaitable[None]]


@pytest.fixture
async def offer(source: Client, c2: Client, c3: Client) -> AsyncIterator[Offer]:
    """Yield a function that sets how many units a target offers, and waits until the source knows.

    The target's first node offers them.
    """

    async def put(target: Client, name: str, amount: int | None) -> None:
        node = min(objects.name(node) for node in await target.list(kinds.NODES))
        quantity = None if amount is None else str(amount)
        status = {"capacity": {UNIT: quantity}, "allocatable": {UNIT: quantity}}
        await target.patch(kinds.NODES, node, {"status": status}, subresource="status")

        def knows(virtual: Object) -> bool:
            there = (objects.status(virtual).get("allocatable") or {}).get(UNIT, "0")
            return there == (quantity or "0")

        await kit.until_one(source, kinds.NODES, names.virtual_node("default", name), "", knows)

    yield put
    await put(c2, "c2", None)
    await put(c3, "c3", None)


def unit_pod(name: str, app: str, spec: Object | None = None, /, **annotations: Any) -> Object:
    """Return a pod that asks for one unit."""
    body = kit.pod(name, annotations={keys.ELECT: "", **annotations}, **(spec or {}))
    body["metadata"]["labels"] = {"app": app}
    resources = objects.spec(body)["containers"][0]["resources"]
    resources["requests"][UNIT] = "1"
    resources["limits"] = {UNIT: "1"}
    return body


async def until_running(source: Client, app: str, count: int) -> list[str]:
    pods = await kit.until_pods(source, app, lambda all_: kit.running(all_, count))
    return [str(objects.spec(pod)["nodeName"]) for pod in pods.values()]


async def test_every_full_target_is_shown_the_pods_for_its_autoscaler(
    source: Client, c2: Client, c3: Client, offer: Offer
) -> None:
    for number in range(4):
        await source.create(kinds.PODS, unit_pod(f"scaled-{number}", "scaled"), "default")

    selector = f"{keys.PREFIX}app=scaled"
    for target in (c2, c3):
        await kit.until(
            target,
            kinds.POD_CHAPERONS,
            lambda all_: len(all_) == 4,
            namespace="default",
            label_selector=selector,
        )

    await offer(c3, "c3", 4)  # by growing
    assert set(await until_running(source, "scaled", 4)) == {names.virtual_node("default", "c3")}


async def test_pods_preempt_in_the_one_target_where_they_can(
    source: Client, c2: Client, c3: Client, offer: Offer
) -> None:
    for cluster in (source, c2, c3):
        for name, value in (("precious", 1000), ("cheap", 10)):
            metadata = {"name": name}
            await cluster.apply(PRIORITIES, {"metadata": metadata, "value": value}, manager="test")

    try:
        for target, name, priority in ((c2, "c2", "precious"), (c3, "c3", "cheap")):
            await offer(target, name, 4)
            for number in range(4):
                holder = unit_pod(f"holder-{number}", "holder", {"priorityClassName": priority})
                holder["metadata"]["annotations"] = {}
                await target.create(kinds.PODS, holder, "default")

            await until_running(target, "holder", 4)
            await kit.until_one(target, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", is_full)

        for number in range(4):
            vip = unit_pod(f"vip-{number}", "vip", {"priorityClassName": "precious"})
            await source.create(kinds.PODS, vip, "default")

        # A wake-up that kube-scheduler loses (kubernetes/kubernetes#141694) costs a minute.
        nodes = await until_running(source, "vip", 4)
        assert set(nodes) == {names.virtual_node("default", "c3")}
    finally:
        for target in (c2, c3):
            for number in range(4):
                await target.discard(
                    kinds.PODS, {"metadata": {"name": f"holder-{number}", "namespace": "default"}}
                )

        for cluster in (source, c2, c3):
            for name in ("precious", "cheap"):
                await cluster.delete(PRIORITIES, name)


async def test_a_late_reservation_does_not_overrule_anti_affinity(
    source: Client, c2: Client, offer: Offer
) -> None:
    term = {"topologyKey": keys.TARGET_NAME, "labelSelector": {"matchLabels": {"app": "lone"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    constraints = {
        "nodeSelector": {keys.TARGET_NAME: "c2"},
        "affinity": {"podAntiAffinity": required},
    }
    annotations = {keys.PROXY_CONSTRAINTS: json.dumps(constraints)}
    await source.create(kinds.PODS, unit_pod("lone-big", "lone", **annotations), "default")
    await until_said(source, "lone-big", f"Insufficient {UNIT}")
    small = kit.pod("lone-small", annotations={keys.ELECT: "", **annotations})
    small["metadata"]["labels"] = {"app": "lone"}
    await source.create(kinds.PODS, small, "default")
    await kit.until_running(source, "lone-small")
    await offer(c2, "c2", 1)
    big = await until_said(source, "lone-big", "didn't match pod anti-affinity rules")
    assert "nodeName" not in objects.spec(big)
    selector = f"{keys.PARENT_UID}={objects.uid(big)}"
    await kit.until_gone(c2, kinds.POD_CHAPERONS, "default", label_selector=selector)

    await source.delete(kinds.PODS, "lone-small", "default")
    await kit.until_running(source, "lone-big")


def is_full(summary: Object) -> bool:
    """Tell whether every unit is taken, as the target itself says."""
    free, _largest = reported.read_free(summary)
    return free is not None and not free.get(UNIT)


async def until_said(source: Client, name: str, text: str) -> Object:
    def has_text(pod: Object) -> bool:
        return text in str((objects.condition(pod, "PodScheduled") or {}).get("message"))

    return await kit.until_one(source, kinds.PODS, name, "default", has_text)


async def test_a_burst_without_reservation_goes_where_there_is_room(
    source: Client, c2: Client, c3: Client, offer: Offer
) -> None:
    await offer(c2, "c2", 5)
    await offer(c3, "c3", 3)
    template = unit_pod("burst", "burst", **{keys.NO_RESERVATION: ""})
    await source.create(kinds.DEPLOYMENTS, kit.deployment("burst", 8, template), "default")
    nodes = await until_running(source, "burst", 8)
    assert nodes.count(names.virtual_node("default", "c2")) == 5


async def test_a_pending_pod_that_never_restarts_survives_the_end_of_its_candidate(
    source: Client, c2: Client, offer: Offer
) -> None:
    constraints = json.dumps({"nodeSelector": {keys.TARGET_NAME: "c2"}})
    annotations = {keys.PROXY_CONSTRAINTS: constraints}
    pod = unit_pod("once", "once", {"restartPolicy": "Never"}, **annotations)
    await source.create(kinds.PODS, pod, "default")
    proxy = await until_said(source, "once", f"Insufficient {UNIT}")
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await c2.list(kinds.PODS, "default", label_selector=selector)
    await c2.delete(kinds.PODS, objects.name(delegate), "default", grace=0)
    await offer(c2, "c2", 1)
    await kit.until_one(
        source,
        kinds.PODS,
        "once",
        "default",
        lambda p: kit.phase(p) in ("Running", "Succeeded"),
    )
