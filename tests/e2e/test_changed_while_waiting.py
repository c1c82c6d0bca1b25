"""A pod that is changed while it waits for room: nothing of what it was before ever starts."""

from __future__ import annotations

from tests import kit
from tests.e2e.places import C2, Rooms, offer_places, place_pod, rooms
from tests.e2e.test_overrides import container, policy
from tests.kit import Fleet
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.kube.client import Client

__all__ = ["rooms"]


async def test_what_starts_is_the_pod_as_it_is_when_room_comes(
    source: Client, c2: Client, rooms: Rooms, fleet: Fleet
) -> None:
    await rooms(0, 0)
    pod = place_pod("late")
    pod["metadata"]["labels"] = {"app": "late"}
    proxy = await source.create(kinds.PODS, pod, "default")
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"

    def waits(candidate: Object) -> bool:
        return (objects.condition(candidate, "PodScheduled") or {}).get("status") == "False"

    def some_wait(pods: dict[str, Object]) -> bool:
        return any(map(waits, pods.values()))

    await kit.until(c2, kinds.PODS, some_wait, namespace="default", label_selector=selector)
    fleet.kubectl("c1", "set", "image", "pod/late", "main=busybox:9")
    fleet.kubectl("c1", "label", "pod", "late", "tier=front")
    resources = {"requests": {"cpu": "2m"}}
    change: Object = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    await source.patch(kinds.PODS, "late", change, "default", subresource="resize", strategic=True)
    await policy(source, "late", "late", {"image": [{"registry": "mirror.example"}]})
    node = min(objects.name(node) for node in await c2.list(kinds.NODES))
    await offer_places(c2, node, 1)

    assert objects.node_name(await kit.until_running(source, "late")) == C2
    (delegate,) = await c2.list(kinds.PODS, "default", label_selector=selector)
    assert container(delegate)["image"] == "mirror.example/busybox:9"
    assert container(delegate)["resources"]["requests"]["cpu"] == "2m"
    assert objects.labels(delegate)[keys.PREFIX + "tier"] == "front"
    assert objects.metadata(delegate)["generation"] == 1  # it never was anything else
    fleet.kubectl("c1", "delete", "ovpol", "late")
