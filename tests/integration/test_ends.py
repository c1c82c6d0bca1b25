"""A proxy pod goes only when its delegate has, also where chaperons lose their finalizers.

`vnode uninstall --delegates keep` takes them off, in the target and at any moment.
"""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest

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


@pytest.fixture
async def namespace(client: Client) -> str:
    """One in which pods can be created without a webhook."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    await kit.until_one(client, kinds.SERVICE_ACCOUNTS, "default", name, objects.uid)
    return name


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
    client: Client, namespace: str
) -> None:
    """Our copy of it is older than that."""
    body = kit.pod("web", annotations={})
    body["metadata"]["finalizers"] = [keys.PREFIX + "any"]
    proxy = await client.create(kinds.PODS, body, namespace)
    await client.delete(kinds.PODS, "web", namespace)
    proxy = await client.get(kinds.PODS, "web", namespace)
    lets_go, link = ending(client)
    link.seen = await chaperon(client, namespace, "web-1")
    running = await delegate(client, link.seen, objects.uid(proxy))
    free = {"metadata": {"finalizers": None}}
    await client.patch(kinds.POD_CHAPERONS, "web-1", free, namespace)

    await lets_go.end(proxy, "n1")
    await kit.until_gone(client, kinds.POD_CHAPERONS, namespace)
    link.seen = None
    assert await lets_go.end(proxy, "n1") is not None
    assert objects.finalizers(await client.get(kinds.PODS, "web", namespace))

    await release(client, running)
    proxy = await client.get(kinds.PODS, "web", namespace)
    assert await lets_go.end(proxy, "n1") is None
    await kit.until_gone(client, kinds.PODS, namespace)


async def test_delegates_that_are_kept_lose_their_finalizer_and_those_that_end_do_not(
    client: Client, namespace: str
) -> None:
    for name in ("kept", "ends"):
        made = await chaperon(client, namespace, name)
        pod = await delegate(client, made, f"uid-of-{name}")

    await client.delete(kinds.POD_CHAPERONS, "ends", namespace)
    report = Report(say=lambda _text: None)
    one = {"detach": False, "led": False, "ends": Ends(1.0, keep=True), "report": report}
    assert await target_side.keep_delegates(client, **one) == 1
    kept = await client.get(kinds.POD_CHAPERONS, "kept", namespace)
    assert not objects.finalizers(kept)
    assert not objects.is_terminating(kept)
    ends = await client.get(kinds.POD_CHAPERONS, "ends", namespace)
    assert objects.finalizers(ends) == [keys.DELEGATE_FINALIZER]

    await release(client, pod)
    assert await target_side.keep_delegates(client, **one) == 0
