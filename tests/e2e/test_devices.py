"""Devices by claim: pods whose devices the schedulers of targets choose, by ResourceClaims.

No driver runs. ResourceSlices are published for kwok's nodes, and the real schedulers and
controller managers allocate from these.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import pytest

from tests import kit, resource_slices, served
from vnode.api import kinds, objects
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions

PER_NODE: Final = 5
PODS: Final = 20  # more than one target has devices for
MOST_VERSIONS: Final = 12  # of a pod in its first half minute
TEMPLATE: Final = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
SHARED: Final = [{"name": "gpu", "resourceClaimName": "shared"}]
REQUESTS: Final = {
    "requests": [{"name": "one", "exactly": {"deviceClassName": resource_slices.CLASS}}]
}


async def publish(client: Client) -> None:
    """Have each node of a cluster offer devices."""
    for node in await client.list(kinds.NODES):
        await client.create(resource_slices.KIND, resource_slices.of_node(node, PER_NODE))


@pytest.fixture
async def devices(source: Client, c2: Client, c3: Client) -> AsyncIterator[None]:
    """Have both targets offer devices, and the source a template; c2 has the class."""
    await served.need(kinds.RESOURCE_CLAIMS, source, c2, c3)
    template = {"metadata": {"name": "gpus"}, "spec": {"spec": {"devices": REQUESTS}}}
    await source.create(kinds.RESOURCE_CLAIM_TEMPLATES, template, "default")
    for target in (c2, c3):
        await publish(target)

    await c2.create(kinds.DEVICE_CLASSES, resource_slices.device_class())
    yield
    for kind in (kinds.PODS, kinds.RESOURCE_CLAIM_TEMPLATES, kinds.RESOURCE_CLAIMS):
        for obj in await source.list(kind, "default"):
            await source.discard(kind, obj)

    for target in (c2, c3):
        for kind in (resource_slices.KIND, kinds.DEVICE_CLASSES):
            for obj in await target.list(kind):
                await target.discard(kind, obj)

        for kind in (kinds.RESOURCE_CLAIM_TEMPLATES, kinds.RESOURCE_CLAIMS):
            await kit.until_gone(target, kind, "default")


def claimer(name: str, app: str, claims: list[Object]) -> Object:
    pod = kit.pod(name, resourceClaims=claims)
    pod["metadata"]["labels"] = {"app": app}
    objects.spec(pod)["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return pod


def is_allocated(claim: Object) -> bool:
    return bool(objects.status(claim).get("allocation"))


async def count_versions(client: Client, seconds: float) -> Counter[str]:
    """Count the versions that pods of namespace default get within that time, by name."""
    seen: Counter[str] = Counter()
    _items, version = await client.list_at(kinds.PODS, "default")
    try:
        async with asyncio.timeout(seconds):
            selection = ListOptions(kinds.PODS, "default", "", "")
            async with aclosing(watching.stream(client, selection, version)) as batches:
                async for batch in batches:
                    seen.update(objects.name(e.object) for e in batch if e.type != "BOOKMARK")
    except TimeoutError:
        pass

    return seen


@pytest.mark.usefixtures("devices")
async def test_pods_with_a_template_get_their_devices_in_targets_and_none_in_the_source(
    source: Client, c2: Client, c3: Client
) -> None:
    await c3.create(kinds.DEVICE_CLASSES, resource_slices.device_class())
    async with asyncio.TaskGroup() as group:
        versions = group.create_task(count_versions(source, 30))
        await asyncio.sleep(0)
        for number in range(PODS):
            pod = claimer(f"claimer-{number}", "claimer", TEMPLATE)
            await source.create(kinds.PODS, pod, "default")

        pods = await kit.until_pods(source, "claimer", lambda all_: kit.running(all_, PODS))

    nodes = Counter(objects.node_name(pod) for pod in pods.values())
    for target, name in ((c2, "c2"), (c3, "c3")):
        count = nodes[f"admiralty-default-{name}"]
        assert count >= PODS - 3 * PER_NODE
        # Those of candidates that did not win are gone.
        claims = await kit.until(
            target,
            kinds.RESOURCE_CLAIMS,
            lambda all_, n=count: len(all_) == n and all(map(is_allocated, all_.values())),
            namespace="default",
        )
        assert len(claims) == count

    own = await source.list(kinds.RESOURCE_CLAIMS, "default")
    assert len(own) == PODS
    assert not any(map(is_allocated, own))
    counted = versions.result()
    assert max(counted.values()) < MOST_VERSIONS, counted
    assert not await count_versions(source, 5), "pods that idle are written"


@pytest.mark.usefixtures("devices")
async def test_a_class_that_targets_lack_is_named_and_no_candidate_is_made(
    source: Client, c2: Client, c3: Client
) -> None:
    rare: Object = {"name": "one", "exactly": {"deviceClassName": "rare.example.com"}}
    spec = {"spec": {"devices": {"requests": [rare]}}}
    template = {"metadata": {"name": "rare"}, "spec": spec}
    await source.create(kinds.RESOURCE_CLAIM_TEMPLATES, template, "default")
    claims: list[Object] = [{"name": "gpu", "resourceClaimTemplateName": "rare"}]
    await source.create(kinds.PODS, claimer("classy", "classy", claims), "default")
    wanted = 'DeviceClass "rare.example.com" not found: create it in the target'
    await kit.until_refused(source, "classy", wanted)
    for target in (c2, c3):
        assert not await target.list(kinds.POD_CHAPERONS, "default")
        assert not await target.list(kinds.RESOURCE_CLAIM_TEMPLATES, "default")

    named = {**resource_slices.device_class(), "metadata": {"name": "rare.example.com"}}
    await c3.create(kinds.DEVICE_CLASSES, named)
    proxy = await kit.until_running(source, "classy")
    assert objects.node_name(proxy) == "admiralty-default-c3"


@pytest.mark.usefixtures("devices")
async def test_pods_that_share_a_claim_are_in_one_target(
    source: Client, c2: Client, c3: Client
) -> None:
    await c3.create(kinds.DEVICE_CLASSES, resource_slices.device_class())
    claim = {"metadata": {"name": "shared"}, "spec": {"devices": REQUESTS}}
    await source.create(kinds.RESOURCE_CLAIMS, claim, "default")
    for number in range(6):
        pod = claimer(f"sharer-{number}", "sharer", SHARED)
        await source.create(kinds.PODS, pod, "default")

    pods = await kit.until_pods(source, "sharer", lambda all_: kit.running(all_, 6))
    (node,) = {objects.node_name(pod) for pod in pods.values()}
    used, other = (c2, c3) if node.endswith("c2") else (c3, c2)
    (copy,) = await used.list(kinds.RESOURCE_CLAIMS, "default")
    assert is_allocated(copy)
    assert len(objects.status(copy)["reservedFor"]) == 6
    await kit.until_gone(other, kinds.RESOURCE_CLAIMS, "default")
    assert not is_allocated(await source.get(kinds.RESOURCE_CLAIMS, "shared", "default"))
    for name in pods:
        await source.delete(kinds.PODS, objects.split_key(name)[1], "default")

    await kit.until_gone(used, kinds.RESOURCE_CLAIMS, "default")


@pytest.mark.usefixtures("devices")
async def test_a_claim_that_is_missing_is_named_at_once_and_awaited(source: Client) -> None:
    await source.create(kinds.PODS, claimer("early", "early", SHARED), "default")
    missing = 'ResourceClaim "shared" not found: create it'
    await kit.until_refused(source, "early", missing)
    claim = {"metadata": {"name": "shared"}, "spec": {"devices": REQUESTS}}
    await source.create(kinds.RESOURCE_CLAIMS, claim, "default")
    await kit.until_running(source, "early")


@pytest.mark.usefixtures("devices")
async def test_the_first_class_that_has_devices_is_taken(source: Client, c2: Client) -> None:
    big = {"metadata": {"name": "big.example.com"}, "spec": resource_slices.device_class()["spec"]}
    big["spec"]["selectors"] = [{"cel": {"expression": 'device.driver == "big.example.com"'}}]
    alternatives = [
        {"name": "big", "deviceClassName": "big.example.com"},
        {"name": "small", "deviceClassName": resource_slices.CLASS},
    ]
    requests = [{"name": "one", "firstAvailable": alternatives}]
    template = {
        "metadata": {"name": "either"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    await c2.create(kinds.DEVICE_CLASSES, big)
    await source.create(kinds.RESOURCE_CLAIM_TEMPLATES, template, "default")
    claims: list[Object] = [{"name": "gpu", "resourceClaimTemplateName": "either"}]
    await source.create(kinds.PODS, claimer("choosy", "choosy", claims), "default")
    await kit.until_running(source, "choosy")
    (claim,) = await c2.list(kinds.RESOURCE_CLAIMS, "default")
    (result,) = objects.status(claim)["allocation"]["devices"]["results"]
    assert result["request"] == "one/small"


@pytest.mark.usefixtures("devices")
async def test_why_a_target_gives_no_devices_is_told(source: Client, c2: Client) -> None:
    """A quota there keeps its controller manager from making a claim."""
    hard = {"count/resourceclaims.resource.k8s.io": "0"}
    quota = {"metadata": {"name": "no-claims"}, "spec": {"hard": hard}}
    await c2.create(kinds.RESOURCE_QUOTAS, quota, "default")
    try:
        await kit.until_one(
            c2,
            kinds.RESOURCE_QUOTAS,
            "no-claims",
            "default",
            lambda found: "used" in objects.status(found),
        )
        await source.create(kinds.PODS, claimer("poor", "poor", TEMPLATE), "default")
        await kit.until_refused(source, "poor", "no ResourceClaim was made", "exceeded quota")
    finally:
        await c2.delete(kinds.RESOURCE_QUOTAS, "no-claims", "default")

    await kit.until_running(source, "poor")


@pytest.mark.usefixtures("devices")
async def test_a_namespace_without_the_label_for_admin_access_is_told(
    source: Client, c2: Client
) -> None:
    label = "resource.kubernetes.io/admin-access"
    own = {"metadata": {"labels": {label: "true"}}}
    await source.patch(kinds.NAMESPACES, "default", own)
    request = {"deviceClassName": resource_slices.CLASS, "adminAccess": True}
    devices = {"requests": [{"name": "one", "exactly": request}]}
    template = {"metadata": {"name": "admin"}, "spec": {"spec": {"devices": devices}}}
    try:
        await source.create(kinds.RESOURCE_CLAIM_TEMPLATES, template, "default")
        claims: list[Object] = [{"name": "gpu", "resourceClaimTemplateName": "admin"}]
        await source.create(kinds.PODS, claimer("admin", "admin", claims), "default")
        await kit.until_refused(source, "admin", label)
        assert not await c2.list(kinds.POD_CHAPERONS, "default")
    finally:
        await source.patch(kinds.NAMESPACES, "default", {"metadata": {"labels": {label: None}}})
