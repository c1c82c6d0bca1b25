"""Pods that name a virtual node run in its target, by whatever field, as on any node."""

from __future__ import annotations

from typing import Any

import pytest

from tests import kit
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

C3 = names.virtual_node("default", "c3")
HOSTNAME = {"key": "kubernetes.io/hostname", "operator": "In", "values": [C3]}
NAME = {"key": "metadata.name", "operator": "In", "values": [C3]}


def required(**term: Any) -> Object:
    terms = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


async def until_running(source: Client, name: str) -> Object:
    return await kit.until_running(source, name)


@pytest.mark.parametrize(
    ("name", "spec"),
    [
        ("by-hostname", {"nodeSelector": {"kubernetes.io/hostname": C3}}),
        ("by-affinity", {"affinity": required(matchExpressions=[HOSTNAME])}),
        ("by-field", {"affinity": required(matchFields=[NAME])}),
        ("by-node-name", {"nodeName": C3}),
    ],
)
@pytest.mark.parametrize("elected", [True, False], ids=["elected", "plain"])
async def test_a_pod_that_names_a_virtual_node_runs_in_its_target(
    source: Client, c3: Client, name: str, spec: Object, elected: bool
) -> None:
    annotations = {keys.ELECT: ""} if elected else {}
    tolerations = [{"key": keys.PROVIDER_LABEL, "operator": "Exists"}]
    name = f"{name}-{'elected' if elected else 'plain'}"
    made = kit.pod(name, annotations=annotations, tolerations=tolerations, **spec)
    await source.create(kinds.PODS, made, "default")
    pod = await until_running(source, name)
    assert objects.node_name(pod) == C3
    delegate = await c3.get(kinds.PODS, names.chaperon(name, objects.uid(pod)), "default")
    assert C3 not in str(objects.spec(delegate))
    await source.delete(kinds.PODS, name, "default")


async def test_a_virtual_node_is_no_host_of_its_cluster(source: Client) -> None:
    """Its own pods that are spread over hosts would wait for it to be filled."""
    node = await source.get(kinds.NODES, C3)
    assert "kubernetes.io/hostname" not in objects.labels(node)
    assert objects.labels(node)[keys.NODE_NAME] == C3


@pytest.mark.parametrize("same_node", [True, False], ids=["same-node", "any-node"])
async def test_a_copy_to_debug_of_an_elected_pod_runs(
    fleet: Fleet, source: Client, c3: Client, same_node: bool
) -> None:
    original = f"original-{same_node}".lower()
    pinned = {"nodeSelector": {"kubernetes.io/hostname": C3}}
    await source.create(kinds.PODS, kit.pod(original, **pinned), "default")
    await until_running(source, original)
    copy = f"copy-of-{original}"
    fleet.kubectl(
        "c1",
        "debug",
        original,
        f"--copy-to={copy}",
        "--image=busybox",
        "--container=shell",
        "--attach=false",
        f"--same-node={str(same_node).lower()}",
        "--",
        "sleep",
        "1",
    )
    pod = await until_running(source, copy)
    assert {entry["name"] for entry in objects.spec(pod)["containers"]} == {"main", "shell"}
    if same_node:
        delegate = await c3.get(kinds.PODS, names.chaperon(copy, objects.uid(pod)), "default")
        assert len(objects.spec(delegate)["containers"]) == 2

    for name in (original, copy):
        await source.delete(kinds.PODS, name, "default")
