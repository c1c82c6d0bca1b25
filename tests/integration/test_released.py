"""Finalizers of Targets that are gone leave proxy pods that live on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from tests import kit
from vnode.api import keys, kinds, names, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.pods.source.stale_finalizers import StaleFinalizers
from vnode.runtime.supervisor import supervise
from vnode.targets.target_lister import TargetLister

FOREIGN = "example.com/kept"


@pytest.fixture
async def targets(client: Client, pod_namespace: str) -> AsyncIterator[TargetLister]:
    """Yield the lister of Targets `stays` and `goes`, with a releaser at work."""
    for name in ("stays", "goes"):
        body = {"metadata": {"name": name, "namespace": pod_namespace}, "spec": {"self": True}}
        await client.create(kinds.TARGETS, body)

    selector = f"spec.schedulerName={keys.PROXY_SCHEDULER}"
    known, proxies = TargetLister(client), Informer(client, kinds.PODS, field_selector=selector)
    async with supervise() as tasks:
        tasks.start(known.run(), "targets")
        tasks.start(proxies.run(), "proxies")
        await known.wait_synced()
        tasks.start(StaleFinalizers(client, proxies, known, SystemClock()).run(), "finalizers")
        yield known


async def create(
    client: Client, namespace: str, name: str, finalizers: Sequence[str], node: str = ""
) -> Object:
    place = {"nodeName": node} if node else {}
    pod = kit.pod(name, annotations={}, schedulerName=keys.PROXY_SCHEDULER, **place)
    pod["metadata"]["finalizers"] = list(finalizers)
    return await client.create(kinds.PODS, pod, namespace)


async def has(client: Client, pod: Object, finalizers: Sequence[str]) -> None:
    await kit.until_one(
        client,
        kinds.PODS,
        objects.name(pod),
        objects.namespace(pod),
        lambda now: objects.finalizers(now) == list(finalizers),
    )


async def test_a_pod_that_waits_or_runs_elsewhere_is_released_when_a_target_goes(
    client: Client, pod_namespace: str, targets: TargetLister
) -> None:
    stays, goes = (names.finalizer(pod_namespace, name) for name in ("stays", "goes"))
    node = names.virtual_node(pod_namespace, "stays")
    pods = [
        await create(client, pod_namespace, name, (FOREIGN, stays, goes), place)
        for name, place in (("waits", ""), ("runs", node))
    ]
    await client.delete(kinds.TARGETS, "goes", pod_namespace)
    for pod in pods:
        await has(client, pod, (FOREIGN, stays))


async def test_a_pod_that_came_late_is_released_and_those_that_are_about_to_end_are_not(
    client: Client, pod_namespace: str, targets: TargetLister
) -> None:
    stays, goes = (names.finalizer(pod_namespace, name) for name in ("stays", "goes"))
    ending = await create(client, pod_namespace, "ending", (stays, goes))
    await client.delete(kinds.PODS, "ending", pod_namespace)
    node = names.virtual_node(pod_namespace, "goes")
    on_lost = await create(client, pod_namespace, "on-lost", (stays, goes), node)
    await client.delete(kinds.TARGETS, "goes", pod_namespace)
    await has(client, await create(client, pod_namespace, "late", (stays, goes)), (stays,))
    for pod in (ending, on_lost):
        now = await client.get(kinds.PODS, objects.name(pod), pod_namespace)
        assert objects.finalizers(now) == [stays, goes]
        free = {"metadata": {"finalizers": []}}
        await client.patch(kinds.PODS, objects.name(pod), free, pod_namespace)


async def test_nothing_is_taken_off_before_all_targets_are_known(client: Client) -> None:
    assert TargetLister(client).has_finalizer(names.finalizer("default", "any"))
