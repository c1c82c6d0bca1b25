"""What holds for the deletions of every API server; see `contract`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.apiserver.contract import (
    CHAPERONS,
    MAPS,
    chaperon,
    config_map,
    pod,
    watched,
)
from vnode.api import kinds, objects
from vnode.api.errors import Conflict, Denied, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client


async def test_a_deletion_answers_whether_the_object_is_gone(
    client: Client, pod_namespace: str
) -> None:
    for kind, body in ((MAPS, config_map(pod_namespace)), (CHAPERONS, chaperon(pod_namespace))):
        made = await client.create(kind, body)
        with pytest.raises(Conflict):
            await client.delete(kind, objects.name(made), pod_namespace, uid="another")

        assert await client.delete(kind, objects.name(made), pod_namespace) is None
        with pytest.raises(NotFound):
            await client.delete(kind, objects.name(made), pod_namespace)


async def test_finalizers_keep_an_object_until_the_last_is_removed(
    client: Client, pod_namespace: str
) -> None:
    def finalizers(*names: str) -> Object:
        return {"metadata": {"finalizers": list(names)}}

    await client.create(CHAPERONS, chaperon(pod_namespace, finalizers=["a.b/c", "a.b/d"]))
    async with watched(client, CHAPERONS, pod_namespace) as events:
        kept = await client.delete(CHAPERONS, "c", pod_namespace)
        assert kept is not None
        assert objects.is_terminating(kept)
        assert objects.metadata(kept)["deletionGracePeriodSeconds"] == 0
        assert objects.metadata(kept)["generation"] == 2
        assert await client.delete(CHAPERONS, "c", pod_namespace) == kept
        assert await events.next() == ("MODIFIED", kept)
        with pytest.raises(Invalid):
            await client.patch(CHAPERONS, "c", finalizers("a.b/c", "a.b/d", "a.b/e"), pod_namespace)

        one = await client.patch(CHAPERONS, "c", finalizers("a.b/c"), pod_namespace)
        assert (await events.next())[0] == "MODIFIED"
        none = await client.patch(CHAPERONS, "c", finalizers(), pod_namespace)
        assert objects.resource_version(none) == objects.resource_version(one)
        type_, last = await events.next()
        assert (type_, objects.finalizers(last)) == ("DELETED", ["a.b/c"])

    with pytest.raises(NotFound):
        await client.get(CHAPERONS, "c", pod_namespace)


async def is_there(client: Client, namespace: str) -> bool:
    return bool(await client.list(kinds.PODS, namespace, field_selector="metadata.name=p"))


async def test_a_pod_without_a_node_goes_at_once(client: Client, pod_namespace: str) -> None:
    await client.create(kinds.PODS, pod(pod_namespace))
    await client.delete(kinds.PODS, "p", pod_namespace)
    assert not await is_there(client, pod_namespace)


async def test_a_finished_pod_goes_at_once(client: Client, pod_namespace: str) -> None:
    await client.create(kinds.PODS, pod(pod_namespace, node="n"))
    body: Any = {"status": {"phase": "Succeeded"}}
    await client.patch(kinds.PODS, "p", body, pod_namespace, subresource="status")
    await client.delete(kinds.PODS, "p", pod_namespace)
    assert not await is_there(client, pod_namespace)


async def test_a_pod_on_a_node_stays_until_it_is_deleted_without_grace(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(kinds.PODS, pod(pod_namespace, node="n"))
    kept = await client.delete(kinds.PODS, "p", pod_namespace, uid=objects.uid(made))
    assert kept is not None
    assert objects.metadata(kept)["deletionGracePeriodSeconds"] == 30
    assert objects.metadata(kept)["generation"] == 2
    longer = await client.delete(kinds.PODS, "p", pod_namespace, grace=60)
    assert longer is not None
    assert objects.resource_version(longer) == objects.resource_version(kept)
    shorter = await client.delete(kinds.PODS, "p", pod_namespace, grace=5)
    assert objects.metadata(shorter or {})["deletionGracePeriodSeconds"] == 5
    await client.delete(kinds.PODS, "p", pod_namespace, grace=0)
    assert not await is_there(client, pod_namespace)


async def test_a_pod_with_finalizers_and_a_node_needs_both_to_end(
    client: Client, pod_namespace: str
) -> None:
    await client.create(kinds.PODS, pod(pod_namespace, node="n", finalizers=["a.b/c"]))
    await client.delete(kinds.PODS, "p", pod_namespace)
    kept = await client.delete(kinds.PODS, "p", pod_namespace, grace=0)
    assert objects.metadata(kept or {})["deletionGracePeriodSeconds"] == 0
    await client.patch(kinds.PODS, "p", {"metadata": {"finalizers": None}}, pod_namespace)
    assert not await is_there(client, pod_namespace)


async def test_an_eviction_deletes_a_pod(client: Client, pod_namespace: str) -> None:
    await client.create(kinds.PODS, pod(pod_namespace, node="n"))
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": pod_namespace},
        "deleteOptions": {"gracePeriodSeconds": 7},
    }
    await client.create(kinds.PODS, body, pod_namespace, name="p", subresource="eviction")
    kept = await client.get(kinds.PODS, "p", pod_namespace)
    assert objects.metadata(kept)["deletionGracePeriodSeconds"] == 7
    await client.delete(kinds.PODS, "p", pod_namespace, grace=0)


async def test_nothing_is_created_in_a_namespace_that_is_being_deleted(
    client: Client, pod_namespace: str
) -> None:
    held = config_map(pod_namespace, "held", finalizers=["a.b/c"])
    await client.create(MAPS, held)
    kept = await client.delete(kinds.NAMESPACES, pod_namespace)
    assert objects.status(kept or {})["phase"] == "Terminating"
    with pytest.raises(Denied):
        await client.create(MAPS, config_map(pod_namespace, "late"))

    none = {"metadata": {"finalizers": None}}
    await client.patch(MAPS, "held", none, pod_namespace)
