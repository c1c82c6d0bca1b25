"""What holds for the lists, watches and deletions of every API server; see `contract`."""

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
from vnode.api.errors import ApiError, Conflict, Gone, Invalid, NotFound
from vnode.api.objects import Object
from vnode.kube.client import METADATA, Client

# Lists


async def listed(client: Client, namespace: str, **selectors: str) -> list[str]:
    found = await client.list(MAPS, namespace, **selectors)
    return [objects.name(obj) for obj in found if objects.name(obj) != "kube-root-ca.crt"]


async def test_lists_follow_label_selectors(client: Client, pod_namespace: str) -> None:
    for name, labels in (("a", {"x": "1"}), ("b", {"x": "2", "y": ""}), ("c", {})):
        await client.create(MAPS, config_map(pod_namespace, name, labels=labels))

    for selector, names in (
        ("", ["a", "b", "c"]),
        ("x=1", ["a"]),
        ("x==1", ["a"]),
        ("x!=1", ["b", "c"]),
        ("x", ["a", "b"]),
        ("!x", ["c"]),
        ("x in (1,2)", ["a", "b"]),
        ("x notin (1)", ["b", "c"]),
        ("x,y", ["b"]),
    ):
        assert await listed(client, pod_namespace, label_selector=selector) == names, selector

    with pytest.raises(Invalid):
        await client.list(MAPS, pod_namespace, label_selector="x in 1")


async def test_lists_follow_field_selectors(client: Client, pod_namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(MAPS, config_map(pod_namespace, name))
        await client.create(kinds.PODS, pod(pod_namespace, name, node="n" if name == "a" else ""))

    assert await listed(client, pod_namespace, field_selector="metadata.name=a") == ["a"]
    assert await listed(client, pod_namespace, field_selector="metadata.name!=a") == ["b"]
    for selector, names in (
        ("spec.nodeName=n", ["a"]),
        ("spec.nodeName=", ["b"]),
        ("spec.nodeName!=,spec.schedulerName==example", ["a"]),
        ("spec.schedulerName!=example", []),
        ("status.phase=Pending", ["a", "b"]),
        (f"metadata.namespace={pod_namespace}", ["a", "b"]),
    ):
        found = await client.list(kinds.PODS, pod_namespace, field_selector=selector)
        assert [objects.name(obj) for obj in found] == names, selector

    for kind, selector in ((kinds.PODS, "spec.dnsPolicy=x"), (MAPS, "spec.nodeName=n")):
        with pytest.raises(Invalid):
            await client.list(kind, pod_namespace, field_selector=selector)


async def page(client: Client, namespace: str, **query: str) -> Object:
    answer: Object = await client.request(
        "GET", MAPS.path(namespace), query={"limit": "2", "labelSelector": "x", **query}
    )
    return answer


async def test_pages_of_a_list_show_one_moment(client: Client, pod_namespace: str) -> None:
    for name in ("a", "b", "c"):
        await client.create(MAPS, config_map(pod_namespace, name, labels={"x": "1"}))

    first = await page(client, pod_namespace)
    assert [objects.name(obj) for obj in first["items"]] == ["a", "b"]
    await client.delete(MAPS, "c", pod_namespace)
    token = first["metadata"]["continue"]
    second = await page(client, pod_namespace, **{"continue": token})
    assert [objects.name(obj) for obj in second["items"]] == ["c"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert not second["metadata"].get("continue")


async def test_items_of_built_in_kinds_do_not_say_what_they_are(
    client: Client, pod_namespace: str
) -> None:
    await client.create(MAPS, config_map(pod_namespace))
    await client.create(CHAPERONS, chaperon(pod_namespace))
    (plain,) = await client.list(MAPS, pod_namespace, field_selector="metadata.name=a")
    (custom,) = await client.list(CHAPERONS, pod_namespace)
    assert "kind" not in plain
    assert custom["kind"] == "PodChaperon"


async def test_metadata_can_be_read_alone(client: Client, pod_namespace: str) -> None:
    made = await client.create(MAPS, config_map(pod_namespace, "a", {"k": "v"}))
    found, version = await client.list_at(
        MAPS, pod_namespace, field_selector="metadata.name=a", metadata_only=True
    )
    (item,) = found
    assert objects.uid(item) == objects.uid(made)
    assert "data" not in item
    one = await client.request("GET", MAPS.path(pod_namespace, "a"), accept=METADATA)
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    async with watched(client, MAPS, pod_namespace, version, metadata_only=True) as events:
        await client.delete(MAPS, "a", pod_namespace)
        type_, obj = await events.next()
        assert (type_, obj["kind"], "data" in obj) == ("DELETED", "PartialObjectMetadata", False)


# Watches


async def test_a_watch_shows_what_happens_after_its_version(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(MAPS, config_map(pod_namespace, "a", {"k": "v"}))
    changed = await client.patch(MAPS, "a", {"data": {"k": "w"}}, pod_namespace)
    async with watched(client, MAPS, pod_namespace, objects.resource_version(made)) as events:
        assert await events.next() == ("MODIFIED", changed)
        await client.delete(MAPS, "a", pod_namespace)
        type_, last = await events.next()
        assert (type_, last["data"]) == ("DELETED", {"k": "w"})
        assert int(objects.resource_version(last)) > int(objects.resource_version(changed))
        again = await client.create(MAPS, config_map(pod_namespace))
        assert await events.next() == ("ADDED", again)


async def test_what_stops_to_match_is_deleted_to_a_watch(
    client: Client, pod_namespace: str
) -> None:
    def labels(**values: str | None) -> Object:
        return {"metadata": {"labels": values}}

    await client.create(MAPS, config_map(pod_namespace))
    async with watched(client, MAPS, pod_namespace, label_selector="x=1") as events:
        added = await client.patch(MAPS, "a", labels(x="1"), pod_namespace)
        assert await events.next() == ("ADDED", added)
        changed = await client.patch(MAPS, "a", labels(y="1"), pod_namespace)
        assert await events.next() == ("MODIFIED", changed)
        gone = await client.patch(MAPS, "a", labels(x=None), pod_namespace)
        type_, last = await events.next()
        assert (type_, objects.labels(last)) == ("DELETED", {"x": "1", "y": "1"})
        assert objects.resource_version(last) == objects.resource_version(gone)


async def test_a_watch_of_pods_without_a_node_loses_those_that_are_bound(
    client: Client, pod_namespace: str
) -> None:
    await client.create(kinds.PODS, pod(pod_namespace))
    selector = "spec.nodeName="
    async with watched(client, kinds.PODS, pod_namespace, field_selector=selector) as events:
        body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        await client.create(kinds.PODS, body, pod_namespace, name="p", subresource="binding")
        assert (await events.next())[0] == "DELETED"


async def test_a_version_that_is_too_old_is_gone(client: Client, pod_namespace: str) -> None:
    await client.create(CHAPERONS, chaperon(pod_namespace))
    with pytest.raises(Gone):
        async with watched(client, CHAPERONS, pod_namespace, "1") as events:
            await events.next()


async def test_a_version_that_is_none_is_refused(client: Client, pod_namespace: str) -> None:
    with pytest.raises(ApiError):
        async with watched(client, MAPS, pod_namespace, "not-a-version") as events:
            await events.next()


# Deleting


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

        await client.patch(CHAPERONS, "c", finalizers("a.b/c"), pod_namespace)
        assert (await events.next())[0] == "MODIFIED"
        await client.patch(CHAPERONS, "c", finalizers(), pod_namespace)
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
