"""Pods that ask for devices: they go where one node has them, of the model that they name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from tests import background, kit
from tests.e2e.gpu_pods import GPU, MODEL, gpu_pod
from tests.fleets import vnode
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects, rows_text
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer

C2, C3 = (names.virtual_node("default", name) for name in ("c2", "c3"))


async def install(target: Client, *nodes: tuple[int, str]) -> None:
    """Give a target's nodes so many GPUs of these models."""
    present = sorted(objects.name(node) for node in await target.list(kinds.NODES))
    for name, (gpus, model) in zip(present, nodes, strict=True):
        quantity = str(gpus) if gpus else None
        status = {"capacity": {GPU: quantity}, "allocatable": {GPU: quantity}}
        await target.patch(kinds.NODES, name, {"metadata": {"labels": {MODEL: model or None}}})
        await target.patch(kinds.NODES, name, {"status": status}, subresource="status")


async def equip(target: Client, *nodes: tuple[int, str]) -> None:
    """Give a target's nodes so many GPUs of these models, and wait until its summary says so."""
    await install(target, *nodes)
    wanted: dict[str, dict[int, int]] = {}
    for gpus, model in nodes:
        if gpus:
            amounts = wanted.setdefault(model, {})
            amounts[gpus] = amounts.get(gpus, 0) + 1

    def says_so(summary: Object) -> bool:
        rows = rows_text.decode(objects.annotations(summary).get(keys.ROWS))
        found = rows.histogram(GPU) if rows else {}
        return {model: amounts for model, amounts in found.items() if model} == wanted

    await kit.until_one(target, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", says_so)


@pytest.fixture
async def gpus(source: Client, c2: Client, c3: Client) -> AsyncIterator[None]:
    """Give c2 three nodes with one A100 each, and c3 a node with four and one with two T4s."""
    await equip(c2, *[(1, "A100")] * 3)
    await equip(c3, (4, "A100"), (2, "T4"), (0, ""))
    for name in ("c2", "c3"):
        node = names.virtual_node("default", name)
        await kit.until_one(
            source, kinds.NODES, node, "", lambda n: GPU in objects.status(n)["allocatable"]
        )

    yield
    for target in (c2, c3):
        await equip(target, *[(0, "")] * 3)


@pytest.mark.usefixtures("gpus")
async def test_devices_in_pieces_get_no_candidate_of_a_pod_that_wants_them_on_one_node(
    source: Client, c2: Client
) -> None:
    asked: set[str] = set()
    candidates = Informer(c2, kinds.POD_CHAPERONS)
    candidates.subscribe(lambda old, new: asked.add(objects.name(objects.latest(old, new))))
    async with background.running(candidates.run()):
        await candidates.synced.wait()
        asked.clear()
        for number in range(2):
            await source.create(kinds.PODS, gpu_pod(f"pair-{number}", 2), "default")
            pod = await kit.until_running(source, f"pair-{number}")
            assert objects.node_name(pod) == C3

    assert not asked


@pytest.mark.usefixtures("gpus")
async def test_a_pod_gets_the_model_that_it_names_from_a_target_of_several(
    source: Client, c3: Client
) -> None:
    for name, count, model in (("big", 4, "A100"), ("small", 2, "T4")):
        await source.create(kinds.PODS, gpu_pod(name, count, model), "default")
        pod = await kit.until_running(source, name)
        assert objects.node_name(pod) == C3
        delegate = await c3.get(kinds.PODS, names.chaperon(name, objects.uid(pod)), "default")
        node = await c3.get(kinds.NODES, objects.node_name(delegate))
        assert objects.labels(node)[MODEL] == model


@pytest.mark.usefixtures("gpus")
def test_top_shows_where_how_many_are_free_on_one_node(fleet: Fleet) -> None:
    words = ("top", "accelerators", "-A", "--kubeconfig", fleet.kubeconfig("c1"))
    done = vnode(*words)
    assert done.code == 0, done.err
    assert [line.split() for line in done.out.splitlines()[1:]] == [
        ["default/c2", GPU, "A100", "3", "3", "1", "3", "0", "0", "0", "<none>"],
        ["default/c3", GPU, "A100", "4", "4", "4", "4", "2", "1", "0", "<none>"],
        ["default/c3", GPU, "T4", "2", "2", "2", "2", "1", "0", "0", "<none>"],
    ]


@pytest.mark.usefixtures("gpus")
async def test_a_model_that_nobody_has_is_said(source: Client) -> None:
    def is_told(pod: Object) -> bool:
        message = (objects.condition(pod, "PodScheduled") or {}).get("message") or ""
        return f"no node has {MODEL}=H100" in message

    await source.create(kinds.PODS, gpu_pod("modern", 1, "H100"), "default")
    await kit.until_one(source, kinds.PODS, "modern", "default", is_told)


@pytest.mark.usefixtures("gpus")
async def test_pods_that_come_together_fill_all_devices(source: Client) -> None:
    for number in range(9):
        await source.create(kinds.PODS, gpu_pod(f"one-{number}", 1), "default")

    pods = [await kit.until_running(source, f"one-{number}") for number in range(9)]
    assert Counter(map(objects.node_name, pods)) == {C2: 3, C3: 6}


@pytest.fixture
async def growing(source: Client, gpus: None) -> AsyncIterator[None]:
    """Tell that c2 may get two nodes of two H100s."""
    pools = [{"labels": {MODEL: "H100"}, "allocatable": {GPU: 2}, "max": 2}]

    async def annotate(text: str | None) -> None:
        metadata = {"annotations": {keys.NODE_POOLS: text}}
        await source.patch(kinds.TARGETS, "c2", {"metadata": metadata}, "default")

    async def until_valid(status: str) -> None:
        def is_so(target: Object) -> bool:
            return (objects.condition(target, "NodePoolsValid") or {}).get("status") == status

        await kit.until_one(source, kinds.TARGETS, "c2", "default", is_so)

    await annotate("[")
    await until_valid("False")
    await annotate(json.dumps(pools))
    await until_valid("True")
    yield
    await annotate(None)


@pytest.mark.usefixtures("growing")
async def test_a_pod_of_a_model_that_nobody_has_waits_where_a_pool_may_grow(
    source: Client, c2: Client, fleet: Fleet
) -> None:
    words = ("top", "accelerators", "-A", "--kubeconfig", fleet.kubeconfig("c1"))
    lines = [line.split() for line in vnode(*words).out.splitlines()]
    assert ["default/c2", GPU, "H100", *"0000000", "+4"] in lines
    made = await source.create(kinds.PODS, gpu_pod("next", 2, "H100"), "default")
    name = names.chaperon("next", objects.uid(made))
    await kit.until_one(c2, kinds.POD_CHAPERONS, name, "default", lambda _chaperon: True)
    await install(c2, (1, "A100"), (1, "A100"), (2, "H100"))  # the candidate takes them at once
    pod = await kit.until_running(source, "next")
    assert objects.node_name(pod) == C2
