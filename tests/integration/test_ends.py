"""A proxy pod goes only when its delegate has, also where chaperons lose their finalizers.

`vnode uninstall --delegates keep` takes them off, in the target and at any moment.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.cli.removing import target_side
from vnode.cli.removing.reporting import Report
from vnode.cli.removing.source_side import Ends
from vnode.kube.client import Client
from vnode.pods.ending import Ending
from vnode.pods.mirroring import Mirror

HOLD = "example.com/still-running"


async def chaperon(client: Client, namespace: str, name: str) -> Object:
    body = {
        "metadata": {"name": name, "finalizers": [keys.DELEGATE_FINALIZER]},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
    return await client.create(kinds.POD_CHAPERONS, body, namespace)


async def delegate(client: Client, of: Object, parent_uid: str) -> Object:
    """One that does not end as long as it is held."""
    pod = kit.pod(objects.name(of), annotations={})
    owner = objects.reference(of, kinds.POD_CHAPERONS.kind, kinds.POD_CHAPERONS.api_version)
    owner = {k: owner[k] for k in ("apiVersion", "kind", "name", "uid")} | {"controller": True}
    pod["metadata"] |= {
        "finalizers": [HOLD],
        "labels": {keys.PARENT_UID: parent_uid},
        "ownerReferences": [owner],
    }
    return await client.create(kinds.PODS, pod, objects.namespace(of))


async def release(client: Client, pod: Object) -> None:
    namespace, name = objects.namespace(pod), objects.name(pod)
    await client.patch(kinds.PODS, name, {"metadata": {"finalizers": None}}, namespace)
    await client.discard(kinds.PODS, pod, grace=0)
    await kit.until_gone(client, kinds.PODS, namespace, field_selector=f"metadata.name={name}")


def ending(client: Client) -> tuple[Ending, Any]:
    """And the link; one cluster is source and target."""
    link = SimpleNamespace(client=client, synced=True, runs_vnode=False, seen=None)
    link.candidate = lambda _uid: link.seen
    links: Any = SimpleNamespace(get=lambda _node: link)
    mirror: Any = Mirror(client, SimpleNamespace())  # type: ignore[arg-type]
    return Ending(client, links, mirror, lambda _node: True), link


async def test_a_chaperon_that_has_lost_its_finalizer_does_not_speak_for_its_delegate(
    client: Client, pod_namespace: str
) -> None:
    """Our copy of it is older than that."""
    body = kit.pod("web", annotations={})
    body["metadata"]["finalizers"] = [keys.PREFIX + "any"]
    proxy = await client.create(kinds.PODS, body, pod_namespace)
    await client.delete(kinds.PODS, "web", pod_namespace)
    proxy = await client.get(kinds.PODS, "web", pod_namespace)
    lets_go, link = ending(client)
    link.seen = await chaperon(client, pod_namespace, "web-1")
    running = await delegate(client, link.seen, objects.uid(proxy))
    free = {"metadata": {"finalizers": None}}
    await client.patch(kinds.POD_CHAPERONS, "web-1", free, pod_namespace)

    await lets_go.end(proxy, "n1")
    await kit.until_gone(client, kinds.POD_CHAPERONS, pod_namespace)
    link.seen = None
    assert await lets_go.end(proxy, "n1") is not None
    assert objects.finalizers(await client.get(kinds.PODS, "web", pod_namespace))

    await release(client, running)
    proxy = await client.get(kinds.PODS, "web", pod_namespace)
    assert await lets_go.end(proxy, "n1") is None
    await kit.until_gone(client, kinds.PODS, pod_namespace)


async def test_delegates_that_are_kept_lose_their_finalizer_and_those_that_end_do_not(
    client: Client, pod_namespace: str
) -> None:
    for name in ("kept", "ends"):
        made = await chaperon(client, pod_namespace, name)
        pod = await delegate(client, made, f"uid-of-{name}")

    await client.delete(kinds.POD_CHAPERONS, "ends", pod_namespace)
    report = Report(say=lambda _text: None)
    one = {"detach": False, "led": False, "ends": Ends(1.0, keep=True), "report": report}
    assert await target_side.keep_delegates(client, **one) == 1
    kept = await client.get(kinds.POD_CHAPERONS, "kept", pod_namespace)
    assert not objects.finalizers(kept)
    assert not objects.is_terminating(kept)
    ends = await client.get(kinds.POD_CHAPERONS, "ends", pod_namespace)
    assert objects.finalizers(ends) == [keys.DELEGATE_FINALIZER]

    await release(client, pod)
    assert await target_side.keep_delegates(client, **one) == 0
