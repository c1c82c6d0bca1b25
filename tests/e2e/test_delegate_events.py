"""Events of delegates, on their proxies: what `kubectl describe pod` shows of the target."""

from __future__ import annotations

from typing import Any

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.kube.client import Client

DELAYED = "pod-ready.stage.kwok.x-k8s.io/delay"


async def until_told(source: Client, pod: Object, reason: str, word: str = "") -> Object:
    """Wait for an Event of the delegate on its proxy."""

    def is_told(event: Object) -> bool:
        return event["reason"] == reason and word in event["message"]

    found = await kit.until(
        source,
        kinds.EVENTS,
        lambda all_: any(map(is_told, all_.values())),
        namespace="default",
        field_selector=f"involvedObject.uid={objects.uid(pod)}",
    )
    return next(filter(is_told, found.values()))


async def run(source: Client, name: str) -> Object:
    """Run a pod that takes a second to start, as containers do."""
    annotations = {keys.ELECT: "", DELAYED: "1s"}
    await source.create(kinds.PODS, kit.pod(name, annotations=annotations), "default")
    return await kit.until_one(source, kinds.PODS, name, "default", kit.is_ready)


def target_of(proxy: Object, **targets: Client) -> tuple[str, Client]:
    """Return the Target to which a proxy is bound, and a client."""
    name = objects.node_name(proxy).removeprefix("admiralty-default-")
    return f"default/{name}", targets[name]


async def create_event(client: Client, delegate: Object, **fields: Any) -> Object:
    """Write an Event as the delegate's kubelet does."""
    now = objects.timestamp(SystemClock().now())  # not before it was scheduled
    about = objects.reference(delegate, "Pod", "v1")
    body = {
        "metadata": {"generateName": f"{objects.name(delegate)}."},
        "involvedObject": about,
        "source": {"component": "kubelet", "host": objects.node_name(delegate)},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        **fields,
    }
    return await client.create(kinds.EVENTS, body, "default")


async def test_a_proxy_tells_where_its_delegate_was_scheduled(
    source: Client, c2: Client, c3: Client
) -> None:
    proxy = await run(source, "told")
    event = await until_told(source, proxy, "Scheduled", "Successfully assigned")
    target, _client = target_of(proxy, c2=c2, c3=c3)
    assert event["source"]["component"] == f"{target}/{keys.CANDIDATE_SCHEDULER}"
    assert event["involvedObject"]["name"] == "told"
    assert event["type"] == "Normal"


async def test_a_warning_of_a_pod_that_runs_is_told_and_counted(
    source: Client, c2: Client, c3: Client
) -> None:
    proxy = await run(source, "warned")
    target, client = target_of(proxy, c2=c2, c3=c3)
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await client.list(kinds.PODS, "default", label_selector=selector)
    await until_told(source, proxy, "Scheduled")

    made = await create_event(
        client, delegate, type="Warning", reason="Unhealthy", message="Probe failed in 1s"
    )
    event = await until_told(source, proxy, "Unhealthy", "Probe failed")
    host = f"{target}/{objects.node_name(delegate)}"
    assert event["source"] == {"component": f"{target}/kubelet", "host": host}
    assert (event["type"], event["count"]) == ("Warning", 1)

    await client.patch(kinds.EVENTS, objects.name(made), {"count": 7}, "default")
    await create_event(client, delegate, type="Warning", reason="BackOff", message="restarting")
    await until_told(source, proxy, "BackOff")
    chaperons = await client.list(kinds.POD_CHAPERONS, "default", label_selector=selector)
    listed = {each["reason"]: each["count"] for each in chaperons[0]["status"]["vnodeEvents"]}
    assert listed == {"Scheduled": 1, "Unhealthy": 7, "BackOff": 1}


async def test_a_message_that_grows_is_patched(source: Client, c2: Client, c3: Client) -> None:
    """API servers take a change of an Event's reason and message."""
    proxy = await run(source, "grows")
    _target, client = target_of(proxy, c2=c2, c3=c3)
    selector = f"{keys.PARENT_UID}={objects.uid(proxy)}"
    (delegate,) = await client.list(kinds.PODS, "default", label_selector=selector)
    first = await until_told(source, proxy, "Scheduled")
    await create_event(
        client, delegate, type="Normal", reason="Killing", message="a probe has failed"
    )
    await create_event(client, delegate, type="Warning", reason="Unhealthy", message="a probe")
    grown = await until_told(source, proxy, "Killing", "Killing: a probe has failed")
    assert objects.name(grown) == objects.name(first)
