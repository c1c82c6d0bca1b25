"""What a real kubelet says of a delegate is told on its proxy: `kubectl describe pod` shows it."""

from __future__ import annotations

from tests import kit
from tests.realnode.cluster import TARGET, NodeCluster, pod
from vnode.api import kinds
from vnode.api.objects import Object

_FROM = f"default/{TARGET}"


async def until_told(source: NodeCluster, name: str, reason: str, words: str) -> Object:
    """Wait for an Event of that reason on a pod, with these words in its message."""

    def is_told(event: Object) -> bool:
        return event["reason"] == reason and words in event["message"]

    async with source.fleet.client(source.name) as client:
        found = await kit.until(
            client,
            kinds.EVENTS,
            lambda all_: any(map(is_told, all_.values())),
            namespace="default",
            field_selector=f"involvedObject.name={name}",
        )

    return next(filter(is_told, found.values()))


async def test_a_pod_that_starts_tells_how_in_one_event(source: NodeCluster):
    source.start("starts", "sleep 1000")
    event = await until_told(source, "starts", "Started", "Scheduled: Successfully assigned")
    for word in ("Pulled: ", "Created: ", "Started: "):
        assert word in event["message"]

    assert event["source"] == {"component": f"{_FROM}/kubelet", "host": f"{_FROM}/{TARGET}-real"}
    selector = (
        "--field-selector=involvedObject.name=starts,reportingComponent="
        + (event["reportingComponent"])
    )
    assert len(source.get("events", selector)["items"]) == 1
    assert f"{_FROM}/kubelet" in source.ask("describe", "pod", "starts")
    source.remove("starts")


async def test_an_image_that_does_not_exist_is_told_with_its_name(source: NodeCluster):
    made = pod("no-image", "true")
    made["spec"]["containers"][0]["image"] = "no-such-image:1"
    source.apply(made)
    failed = await until_told(source, "no-image", "Failed", "no-such-image:1")
    back_off = await until_told(source, "no-image", "BackOff", "no-such-image:1")
    assert (failed["type"], back_off["source"]["component"]) == ("Warning", f"{_FROM}/kubelet")
    assert back_off["involvedObject"]["uid"] == source.get("pod", "no-image")["metadata"]["uid"]
    source.remove("no-image")


async def test_a_probe_that_fails_and_a_container_that_is_killed_for_it_are_told(
    source: NodeCluster,
):
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2}
    source.apply(pod("ill", "sleep 1000", container={"livenessProbe": probe}))
    unhealthy = await until_told(source, "ill", "Unhealthy", "Liveness probe failed")
    assert unhealthy["type"] == "Warning"
    assert unhealthy["source"]["component"] == f"{_FROM}/kubelet"
    await until_told(source, "ill", "Killing", "Killing: Container main failed liveness probe")
    source.remove("ill")
