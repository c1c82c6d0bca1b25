"""Pods that want to be in one target, or in different ones."""

from __future__ import annotations

import json

from tests import kit
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


def constraints(kind: str, app: str) -> str:
    term = {"topologyKey": keys.TARGET_NAME, "labelSelector": {"matchLabels": {"app": app}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return json.dumps({"affinity": {kind: required}})


async def create(source: Client, name: str, app: str, kind: str) -> None:
    annotations = {keys.ELECT: "", keys.PROXY_CONSTRAINTS: constraints(kind, app)}
    body = kit.pod(name, annotations=annotations)
    body["metadata"]["labels"] = {"app": app}
    await source.create(kinds.PODS, body, "default")


async def node_of_running(source: Client, name: str) -> str:
    pod = await kit.until_running(source, name)
    return str(objects.spec(pod)["nodeName"])


def says_why(pod: Object) -> bool:
    message = str((objects.condition(pod, "PodScheduled") or {}).get("message"))
    return message.startswith("0/2 targets: c2, c3: didn't match pod anti-affinity rules")


async def test_pods_with_anti_affinity_go_to_different_targets_and_one_too_many_waits(
    source: Client,
) -> None:
    for name in ("apart-1", "apart-2"):
        await create(source, name, "apart", "podAntiAffinity")

    assert await node_of_running(source, "apart-1") != await node_of_running(source, "apart-2")
    await create(source, "apart-3", "apart", "podAntiAffinity")
    await kit.until_one(source, kinds.PODS, "apart-3", "default", says_why)
    left = await node_of_running(source, "apart-1")
    await source.delete(kinds.PODS, "apart-1", "default")
    assert await node_of_running(source, "apart-3") == left


async def test_a_pod_that_finishes_makes_way_for_one_that_it_kept_out(
    source: Client, c2: Client, c3: Client
) -> None:
    for name in ("alone-1", "alone-2"):
        await create(source, name, "alone", "podAntiAffinity")
        await node_of_running(source, name)

    await create(source, "alone-3", "alone", "podAntiAffinity")
    await kit.until_one(source, kinds.PODS, "alone-3", "default", says_why)
    proxy = await source.get(kinds.PODS, "alone-1", "default")
    target = c2 if objects.spec(proxy)["nodeName"] == names.virtual_node("default", "c2") else c3
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await target.list(kinds.PODS, "default", label_selector=selector)
    finished = {"status": {"phase": "Succeeded"}}
    name = objects.name(delegate)
    await target.patch(kinds.PODS, name, finished, "default", subresource="status")
    assert await node_of_running(source, "alone-3") == objects.spec(proxy)["nodeName"]


async def test_pods_with_affinity_follow_the_first_of_them_to_its_target(source: Client) -> None:
    await create(source, "first", "together", "podAffinity")
    chosen = await node_of_running(source, "first")
    for number in range(3):
        await create(source, f"later-{number}", "together", "podAffinity")

    assert {await node_of_running(source, f"later-{n}") for n in range(3)} == {chosen}
