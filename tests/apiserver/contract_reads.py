"""What holds for the lists and watches of every API server; see `contract`."""

from __future__ import annotations

from types import SimpleNamespace
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
from vnode.api.errors import ApiError, Gone, Invalid
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.following.remote_informers import has_none
from vnode.kube.client import Client
from vnode.kube.transport import METADATA, METADATA_LIST


async def listed(
    client: Client, namespace: str, *, label_selector: str = "", field_selector: str = ""
) -> list[str]:
    found = await client.list(
        MAPS, namespace, label_selector=label_selector, field_selector=field_selector
    )
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


async def test_a_list_of_nothing_has_no_items_and_its_metadata_are_null(
    client: Client, pod_namespace: str
) -> None:
    path, query = MAPS.path(pod_namespace), {"labelSelector": "no=such", "limit": "1"}
    whole = await client.request("GET", path, query=query)
    metadata = await client.request("GET", path, query=query, accept=METADATA_LIST)
    assert (whole["items"], metadata["items"]) == ([], None)


@pytest.mark.parametrize("kind", [MAPS, CHAPERONS])
async def test_whether_there_is_anything_is_told(
    client: Client, pod_namespace: str, kind: Kind
) -> None:
    link: Any = SimpleNamespace(client=client, target=TargetKey(pod_namespace, "c2"))
    assert await has_none(link, kind, "x=1")
    made = config_map if kind is MAPS else chaperon
    await client.create(kind, made(pod_namespace, "a", labels={"x": "1"}))
    assert not await has_none(link, kind, "x=1")


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
