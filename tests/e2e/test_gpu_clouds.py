"""A team with GPUs in three clouds: pods go where the devices are, of the model that they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping

import pytest

from tests import kit
from tests.e2e.gpu_clouds import SELF, T1, T2, T3, GpuClouds, asked, three_clouds
from tests.e2e.gpu_clouds import until_offered as offered
from tests.e2e.gpu_pods import MODEL, gpu_pod, vacate
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client


@pytest.fixture(scope="module")
def three(fleet: Fleet) -> Iterator[GpuClouds]:
    with three_clouds(fleet) as made:
        yield made


@pytest.fixture
async def clouds(
    three: GpuClouds, source: Client, c2: Client, c3: Client
) -> AsyncIterator[GpuClouds]:
    """Yield them with all GPUs free, and leave them so."""
    await offered(source)
    yield three
    for kind in (kinds.DEPLOYMENTS, kinds.PODS):
        query = {"propagationPolicy": "Background"}
        await source.request("DELETE", kind.path("default"), query=query)

    for target in (c2, c3):
        await vacate(target)

    await kit.until_gone(source, kinds.PODS, "default")
    for target in (c2, c3):
        await kit.until_gone(target, kinds.PODS, "default")

    await three.shrink()


def places(pods: Mapping[str, Object]) -> Counter[str]:
    """Count the pods that run, by node."""
    return Counter(objects.node_name(p) for p in pods.values() if kit.phase(p) == "Running")


async def test_pods_of_two_go_where_two_are_free_on_one_node_and_nobody_else_is_asked(
    clouds: GpuClouds, source: Client, c2: Client, c3: Client
) -> None:
    await clouds.leave(c2, "c2", *[1] * 8)
    await clouds.leave(c3, "c3", 4, 0, 0, 0)
    template = gpu_pod("pair", 2, "A100")
    async with asked(c2) as of_t1, asked(source) as of_t2:
        await source.create(kinds.DEPLOYMENTS, kit.deployment("pair", 2, template), "default")
        await kit.until_pods(source, "pair", lambda pods: places(pods) == {T3: 2})

    assert not of_t1 | of_t2


async def test_many_pods_of_two_leave_no_device_free_that_they_may_have(
    clouds: GpuClouds, source: Client, c2: Client, c3: Client
) -> None:
    template = gpu_pod("two", 2, "A100")
    await source.create(kinds.DEPLOYMENTS, kit.deployment("two", 50, template), "default")
    found = await kit.until_pods(source, "two", lambda pods: places(pods) == {T1: 32, T3: 8})
    leaving = [pod for pod in found.values() if objects.node_name(pod) == T1][:5]
    for pod in leaving:  # their owner makes as many anew
        await source.discard(kinds.PODS, pod)

    gone = set(map(objects.uid, leaving))
    await kit.until_pods(
        source,
        "two",
        lambda pods: (
            len(pods) == 50
            and places(pods) == {T1: 32, T3: 8}
            and not gone & set(map(objects.uid, pods.values()))
        ),
    )
    await clouds.grow(3)
    await kit.until_pods(source, "two", lambda pods: places(pods) == {T1: 32, T3: 18})


async def test_a_model_is_found_wherever_it_is_and_nowhere_else(
    clouds: GpuClouds, source: Client, c2: Client, c3: Client
) -> None:
    await clouds.leave(c2, "c2", *[0] * 7, 2)
    await clouds.leave(c3, "c3", *[0] * 4)
    async with asked(source) as of_t2:
        await source.create(kinds.PODS, gpu_pod("large", 1, "A100"), "default")
        assert objects.node_name(await kit.until_running(source, "large")) == T1

    assert not of_t2
    either = {"key": MODEL, "operator": "In", "values": ["A100", "T4"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [either]}]}
    template = gpu_pod("any", 1)
    template["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    }
    await source.create(kinds.DEPLOYMENTS, kit.deployment("any", 17, template), "default")
    await kit.until_pods(source, "any", lambda pods: places(pods) == {T1: 1, T2: 16})


async def test_a_model_that_no_cloud_has_is_said_of_each_of_them(
    clouds: GpuClouds, source: Client
) -> None:
    await source.create(kinds.PODS, gpu_pod("modern", 1, "H100"), "default")
    await kit.until_refused(source, "modern", *(f"{name}: " for name in ("c2", "c3", SELF)))
