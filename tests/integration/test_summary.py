"""The ClusterSummary of a real cluster follows its nodes and pods."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from tests import kit
from vnode.api import keys, kinds, objects, quantities
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound, TooManyRequests
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.nodes.summary import SummaryWriter


@pytest.fixture(autouse=True)
async def served(client: Client) -> None:
    """Wait until ClusterSummaries are served: new CRDs are not served at once."""
    while True:
        try:
            await client.list(kinds.CLUSTER_SUMMARIES)
        except TooManyRequests as error:
            await asyncio.sleep(error.retry_after)
        else:
            return


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(SummaryWriter(client, "vnode", clock=SystemClock()).run())
        try:
            yield
        finally:
            task.cancel()


async def until(client: Client, condition: Any) -> Object:
    return await kit.until_one(client, kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, "", condition)


def free(summary: Object) -> Object:
    return json.loads(objects.annotations(summary).get(keys.FREE_RESOURCES, "{}"))


def cpu(amounts: Object) -> int:
    return quantities.milli(amounts.get("cpu", "0"))


async def real_node(client: Client) -> str:
    nodes = await client.list(kinds.NODES, label_selector=keys.REAL_NODES)
    return objects.name(nodes[0])


def pod(node: str, request: str) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": request}}}
    return {
        "metadata": {"name": "holder", "namespace": "default"},
        "spec": {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0},
    }


async def test_a_summary_adds_up_nodes_and_takes_off_pods(client: Client) -> None:
    async with running(client):
        before = await until(client, lambda summary: free(summary).get("nodes", 0) > 0)
        node = await real_node(client)
        await client.create(kinds.PODS, pod(node, "300m"))
        held = await until(
            client,
            lambda summary: cpu(free(summary)["sum"]) == cpu(free(before)["sum"]) - 300,
        )
        await client.delete(kinds.PODS, "holder", "default", grace=0)
        await until(client, lambda summary: free(summary) == free(before))

    assert objects.annotations(held)[keys.AGENT_VERSION]
    assert held["allocatable"] == before["allocatable"]
    assert cpu(free(held)["largest"]) <= cpu(free(held)["sum"])
    assert objects.labels(before)["kubernetes.io/os"] == "linux"


async def test_a_cordoned_node_does_not_count(client: Client) -> None:
    async with running(client):
        before = await until(client, lambda summary: free(summary).get("nodes", 0) > 0)
        count = free(before)["nodes"]
        name = await real_node(client)
        await client.patch(kinds.NODES, name, {"spec": {"unschedulable": True}})
        less = await until(client, lambda summary: free(summary)["nodes"] == count - 1)
        assert cpu(less["allocatable"]) < cpu(before["allocatable"])
        await client.patch(kinds.NODES, name, {"spec": {"unschedulable": None}})
        await until(client, lambda summary: free(summary)["nodes"] == count)


async def test_a_summary_that_somebody_removes_or_edits_comes_back(client: Client) -> None:
    async with running(client):
        before = await until(client, lambda summary: free(summary).get("nodes", 0) > 0)
        await client.delete(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        again = await until(
            client, lambda summary: objects.uid(summary) != objects.uid(before) and free(summary)
        )
        assert again["capacity"] == before["capacity"]
        edit = {"metadata": {"labels": {"edited": "1"}}, "capacity": {"cpu": "1"}}
        await client.patch(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, edit)
        await until(
            client,
            lambda summary: (
                "edited" not in objects.labels(summary)
                and summary["capacity"] == before["capacity"]
            ),
        )


async def test_nothing_is_written_when_nothing_changed_and_bursts_are_gathered(
    client: Client,
) -> None:
    with suppress(NotFound):  # of a writer before this one, whose heartbeat may soon be due
        older = {"metadata": {"annotations": {keys.HEARTBEAT: None}}}
        await client.patch(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME, older)

    async with running(client):
        before = await until(
            client,
            lambda summary: (
                free(summary).get("nodes", 0) > 0 and keys.HEARTBEAT in objects.annotations(summary)
            ),
        )
        name = await real_node(client)
        for number in range(5):
            note = {"metadata": {"annotations": {"test/number": str(number)}}}
            await client.patch(kinds.NODES, name, note)

        await asyncio.sleep(1.5)
        after = await client.get(kinds.CLUSTER_SUMMARIES, keys.SUMMARY_NAME)
        assert objects.resource_version(before) == objects.resource_version(after)
        writes: list[str] = []
        only = f"metadata.name={keys.SUMMARY_NAME}"
        informer = Informer(client, kinds.CLUSTER_SUMMARIES, field_selector=only)
        informer.subscribe(lambda _old, new: writes.append(objects.resource_version(new or {})))
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(informer.run())
            await informer.synced.wait()
            for number in range(20):
                label = {"metadata": {"labels": {"test/number": str(number)}}}
                await client.patch(kinds.NODES, name, label)

            await until(client, lambda summary: objects.labels(summary).get("test/number") == "19")
            watching.cancel()

        seconds = time.monotonic() - began
        await client.patch(kinds.NODES, name, {"metadata": {"labels": {"test/number": None}}})

    assert len(writes) <= 2 + seconds
