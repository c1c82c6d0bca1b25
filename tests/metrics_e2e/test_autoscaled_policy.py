"""A HorizontalPodAutoscaler in the source over three targets that a placement policy divides."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator

import pytest

from tests import kit, placement_policies
from tests.kit import Fleet
from tests.metrics_e2e.test_usage import AUTOSCALERS, USAGE
from vnode.api import keys, kinds, names, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

NAME = "shop"
WEIGHTS = {"c2": 2, "c3": 1, "third": 1}
LABEL = f"app={NAME}"


@pytest.fixture
async def third(source: Client) -> AsyncIterator[None]:
    """Create a third target, which is another way to the cluster c3."""
    spec = objects.spec(await source.get(kinds.TARGETS, "c3", "default"))
    await source.create(kinds.TARGETS, {"metadata": {"name": "third"}, "spec": spec}, "default")
    await kit.until_one(source, kinds.TARGETS, "third", "default", kit.is_ready)
    yield
    await source.delete(kinds.TARGETS, "third", "default")


@pytest.fixture
async def policy(source: Client, third: None) -> AsyncIterator[None]:
    """Create the placement policy, wait until it is in force, and delete it after the test."""
    targets = [{"cluster": name, "weight": weight} for name, weight in WEIGHTS.items()]
    await placement_policies.create(source, NAME, targets=targets)
    yield
    await placement_policies.delete(source, NAME)


def autoscaler(least: int, most: int, utilization: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {
        "metadata": {"name": NAME},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def deployment(replicas: int) -> Object:
    """Have each pod ask for 100m and use 150m."""
    template = kit.pod(NAME, annotations={keys.ELECT: "", **USAGE})
    template["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100m", "memory": "128Mi"}
    return kit.deployment(NAME, replicas, template)


async def until_divided(source: Client, **expected: int) -> dict[str, Object]:
    """Wait until so many pods run in each target, and no others are there."""
    wanted = {names.virtual_node("default", name): count for name, count in expected.items()}

    def is_so(pods: dict[str, Object]) -> bool:
        live = [pod for pod in pods.values() if not objects.is_terminating(pod)]
        running = [objects.node_name(pod) for pod in live if kit.phase(pod) == "Running"]
        return len(running) == len(live) and Counter(running) == wanted

    return await kit.until_pods(source, NAME, is_so)


async def test_an_autoscaler_grows_and_shrinks_a_workload_by_its_plan(
    fleet: Fleet, source: Client, policy: None
) -> None:
    await source.create(kinds.DEPLOYMENTS, deployment(4), "default")
    try:
        await until_divided(source, c2=2, c3=1, third=1)
        await source.create(AUTOSCALERS, autoscaler(4, 8, 50), "default")
        await until_divided(source, c2=4, c3=2, third=2)
        await kit.until_pods(
            source,
            NAME,
            lambda pods: all(keys.DELETION_COST in objects.annotations(p) for p in pods.values()),
        )
        calmer = autoscaler(4, 8, 300)
        await source.patch(AUTOSCALERS, NAME, {"spec": calmer["spec"]}, "default")
        await until_divided(source, c2=2, c3=1, third=1)
    finally:
        fleet.kubectl("c1", "delete", "horizontalpodautoscaler", NAME, "--ignore-not-found")
        await source.delete(kinds.DEPLOYMENTS, NAME, "default", propagation="Background")
        await kit.until_gone(source, kinds.PODS, "default", label_selector=LABEL)
