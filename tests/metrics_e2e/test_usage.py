"""`kubectl top` and the HorizontalPodAutoscaler in the source, for pods that run in two targets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests import kit
from tests.kit import Fleet
from vnode.api import kinds, objects, quantities
from vnode.api.errors import VnodeError
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

AUTOSCALERS = Kind("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
NAME = "web"
NODES = ("admiralty-default-c2", "admiralty-default-c3")
USED_CPU, USED_MEMORY = "150m", "64Mi"
USAGE = {"kwok.x-k8s.io/usage-cpu": USED_CPU, "kwok.x-k8s.io/usage-memory": USED_MEMORY}
OTHERS = {"c2": "2", "c3": "3"}  # cores that a pod of the target's own uses


def deployment(replicas: int) -> Object:
    """Have each pod ask for 100m and use 150m."""
    template = kit.pod(NAME, annotations={"multicluster.admiralty.io/elect": "", **USAGE})
    template["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100m", "memory": "128Mi"}
    return kit.deployment(NAME, replicas, template)


def autoscaler(most: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "metadata": {"name": NAME},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scaled(fleet: Fleet) -> AsyncIterator[Object]:
    """Yield the autoscaler, once it has raised two pods to four.

    Each target also runs a pod of its own.
    """
    for cluster, cpu in OTHERS.items():
        annotations = {**USAGE, "kwok.x-k8s.io/usage-cpu": cpu}
        async with fleet.client(cluster) as target:
            await target.create(kinds.PODS, kit.pod("own", annotations=annotations), "default")

    async with fleet.client("c1") as source:
        await source.create(kinds.DEPLOYMENTS, deployment(2), "default")
        await source.create(AUTOSCALERS, autoscaler(4), "default")
        await kit.until(
            source,
            kinds.PODS,
            lambda pods: kit.running(pods, 4),
            namespace="default",
        )
        yield await kit.until_one(source, AUTOSCALERS, NAME, "default", _sees_usage, 60)
        await source.delete(AUTOSCALERS, NAME, "default")
        await source.delete(kinds.DEPLOYMENTS, NAME, "default", propagation="Background")
        await kit.until_gone(source, kinds.PODS, "default")

    for cluster in OTHERS:
        async with fleet.client(cluster) as target:
            await target.delete(kinds.PODS, "own", "default", grace=0)


def _sees_usage(one: Object) -> bool:
    shown = objects.status(one).get("currentMetrics") or []
    return any("averageUtilization" in m.get("resource", {}).get("current", {}) for m in shown)


async def _metrics(
    source: Client, kind: Kind, enough: Callable[[dict[str, Object]], bool]
) -> dict[str, Object]:
    """Return the metrics API cannot be watched, and metrics-server has news every ten seconds."""
    found: dict[str, Object] = {}
    for _ in range(240):
        try:
            items = await source.list(kind, "default" if kind.namespaced else None)
        except VnodeError:
            items = []  # not available yet

        found = {objects.name(item): item for item in items}
        if enough(found):
            return found

        await asyncio.sleep(0.5)

    raise AssertionError(f"not so within two minutes: {found}")


def _milli(usage: Object) -> float:
    return quantities.nano(usage["cpu"]) / 10**6


async def test_an_autoscaler_scales_pods_that_run_in_two_targets(source: Client, scaled: Object):
    pods = await source.list(kinds.PODS, "default")
    current = objects.status(scaled)["currentMetrics"][0]["resource"]["current"]

    assert {objects.spec(pod)["nodeName"] for pod in pods} == set(NODES)
    assert current["averageUtilization"] == pytest.approx(150, abs=15)


async def test_kubectl_top_shows_the_use_of_pods(fleet: Fleet, source: Client, scaled: Object):
    names = {objects.name(pod) for pod in await source.list(kinds.PODS, "default")}
    found = await _metrics(source, kinds.POD_METRICS, lambda pods: pods.keys() >= names)

    for name in names:
        (container,) = found[name]["containers"]
        assert container["name"] == "main"
        assert _milli(container["usage"]) == pytest.approx(150, rel=0.1)
        assert container["usage"]["memory"] == "64Mi"

    shown = fleet.kubectl("c1", "top", "pod", "-n", "default", "--no-headers").splitlines()
    assert {line.split()[0] for line in shown} == names


async def test_kubectl_top_shows_the_use_of_whole_targets(fleet: Fleet, source: Client, scaled):
    def all_there(nodes: dict[str, Object]) -> bool:
        return all(
            name in nodes and _milli(nodes[name]["usage"]) == pytest.approx(expected, rel=0.1)
            for name, expected in zip(NODES, (2300, 3300), strict=True)
        )

    await _metrics(source, kinds.NODE_METRICS, all_there)
    shown = fleet.kubectl("c1", "top", "node", *NODES[:1], "--no-headers").split()
    assert shown[0] == NODES[0]
    assert shown[1].endswith("m")


async def test_both_kubelet_answers_name_proxy_pods(source: Client, scaled: Object):
    for node in NODES:
        here = [
            pod
            for pod in await source.list(kinds.PODS, "default")
            if objects.spec(pod)["nodeName"] == node
        ]
        base = kinds.NODES.path(name=node, subresource="proxy")
        summary = await source.request("GET", f"{base}/stats/summary")
        text = await source.text(f"{base}/metrics/resource")

        assert {pod["podRef"]["uid"] for pod in summary["pods"]} == {objects.uid(p) for p in here}
        assert summary["node"]["nodeName"] == node
        for pod in here:
            assert f'container="main",namespace="default",pod="{objects.name(pod)}"' in text
