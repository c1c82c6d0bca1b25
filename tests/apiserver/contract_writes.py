"""What holds for the creations and updates of every API server; see `contract`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.apiserver.contract import (
    CHAPERONS,
    MAPS,
    chaperon,
    condition_types,
    config_map,
    pod,
    watched,
)
from vnode.api import kinds, objects
from vnode.api.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client


async def test_a_created_object_has_what_the_server_adds(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(MAPS, config_map(pod_namespace, "a", {"k": "v"}, uid="mine"))
    metadata = objects.metadata(made)
    assert objects.parse_timestamp(metadata["creationTimestamp"])
    assert metadata["uid"] not in ("", "mine")
    assert int(metadata["resourceVersion"]) > 0
    assert "generation" not in metadata
    assert (made["apiVersion"], made["kind"]) == ("v1", "ConfigMap")
    again = await client.create(MAPS, config_map(pod_namespace, "b"))
    assert int(objects.resource_version(again)) > int(objects.resource_version(made))
    assert objects.uid(again) != objects.uid(made)


async def test_a_name_is_generated(client: Client, pod_namespace: str) -> None:
    body = {"metadata": {"namespace": pod_namespace, "generateName": "a-"}}
    names = {objects.name(await client.create(MAPS, body)) for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


async def test_creations_that_cannot_be_are_refused(client: Client, pod_namespace: str) -> None:
    made = await client.create(MAPS, config_map(pod_namespace))
    for error, body in (
        (AlreadyExists, config_map(pod_namespace)),
        (Invalid, config_map(pod_namespace, "No Name")),
        (Invalid, config_map(pod_namespace, "")),
        (ApiError, config_map(pod_namespace, "b", resourceVersion="1")),
        (NotFound, config_map("no-such-namespace")),
    ):
        with pytest.raises(error):
            await client.create(MAPS, body)

    assert await client.get(MAPS, "a", pod_namespace) == made


async def test_a_dry_run_stores_nothing(client: Client, pod_namespace: str) -> None:
    path, query = MAPS.path(pod_namespace), {"dryRun": "All"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(pod_namespace)}
    assert objects.uid(await client.request("POST", path, query=query, body=body))
    with pytest.raises(NotFound):
        await client.get(MAPS, "a", pod_namespace)


async def test_a_patch_that_changes_nothing_has_no_version_and_no_event(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(MAPS, config_map(pod_namespace, "a", {"k": "v"}))
    async with watched(client, MAPS, pod_namespace, objects.resource_version(made)) as events:
        same = await client.patch(MAPS, "a", {"data": {"k": "v", "no": None}}, pod_namespace)
        assert same == made
        await client.patch(MAPS, "a", {"data": {"k": "w"}}, pod_namespace)
        assert (await events.next())[1]["data"] == {"k": "w"}


async def test_a_merge_patch_replaces_lists_and_removes_nulls(
    client: Client, pod_namespace: str
) -> None:
    await client.create(
        MAPS, config_map(pod_namespace, "a", {"k": "v"}, labels={"x": "1"}, finalizers=["a.b/c"])
    )
    body = {"metadata": {"labels": {"x": None}, "finalizers": ["a.b/d"]}, "data": {"l": "w"}}
    after = await client.patch(MAPS, "a", body, pod_namespace)
    assert objects.metadata(after)["finalizers"] == ["a.b/d"]
    assert "labels" not in objects.metadata(after)
    assert after["data"] == {"k": "v", "l": "w"}
    await client.patch(MAPS, "a", {"metadata": {"finalizers": None}}, pod_namespace)


@pytest.mark.parametrize(
    ("kind", "build", "strategic"),
    [
        (MAPS, config_map, False),
        (kinds.PODS, pod, False),
        (CHAPERONS, pod, False),
        (MAPS, config_map, True),
        (kinds.PODS, pod, True),
    ],
)
async def test_a_patch_of_another_version_or_of_another_uid_is_a_conflict(
    client: Client,
    pod_namespace: str,
    kind: Kind,
    build: Callable[[str, str], Object],
    strategic: bool,
) -> None:
    made = await client.create(kind, build(pod_namespace, "a"))

    async def patch(name: str = "a", **metadata: Any) -> Object:
        body = {"metadata": {"labels": {"x": "1"}, **metadata}}
        return await client.patch(kind, name, body, pod_namespace, strategic=strategic)

    with pytest.raises(Conflict):
        await patch(resourceVersion="1")

    with pytest.raises(Conflict):
        await patch(uid="another")

    version = objects.resource_version(made)
    after = await patch(uid=objects.uid(made), resourceVersion=version)
    assert objects.labels(after) == {"x": "1"}
    with pytest.raises(NotFound):
        await patch("b")


async def test_a_strategic_patch_merges_lists_by_their_keys(
    client: Client, pod_namespace: str
) -> None:
    await client.create(kinds.PODS, pod(pod_namespace, finalizers=["a.b/c"]))

    async def patch(body: Object, subresource: str | None = None) -> Object:
        return await client.patch(
            kinds.PODS, "p", body, pod_namespace, subresource=subresource, strategic=True
        )

    after = await patch({"metadata": {"finalizers": ["a.b/d"]}})
    assert sorted(objects.finalizers(after)) == ["a.b/c", "a.b/d"]
    after = await patch({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c", "a.b/d"]}})
    assert objects.finalizers(after) == []
    one, two = ({"type": f"example.com/{n}", "status": "True"} for n in ("one", "two"))
    await patch({"status": {"conditions": [one]}}, "status")
    after = await patch({"status": {"conditions": [two]}}, "status")
    assert condition_types(after) == {one["type"], two["type"]}
    after = await patch({"status": {"conditions": [{**one, "status": "False"}]}}, "status")
    assert (objects.condition(after, one["type"]) or {})["status"] == "False"
    gone = {"$patch": "delete", "type": one["type"]}
    after = await patch({"status": {"conditions": [gone]}}, "status")
    assert condition_types(after) == {two["type"]}
    after = await patch({"status": {"conditions": [{"$patch": "replace"}, one]}}, "status")
    assert condition_types(after) == {one["type"]}


async def test_a_new_map_with_a_directive_is_dropped_whole(
    client: Client, pod_namespace: str
) -> None:
    await client.create(kinds.PODS, pod(pod_namespace))

    async def resources(value: Any) -> Any:
        body = {"status": {"allocatedResources": value}}
        after = await client.patch(
            kinds.PODS, "p", body, pod_namespace, subresource="status", strategic=True
        )
        return objects.status(after).get("allocatedResources")

    assert await resources({"cpu": "1", "$patch": "replace"}) is None
    assert await resources({"cpu": "1"}) == {"cpu": "1"}
    assert await resources({"memory": "1Mi", "$patch": "replace"}) == {"memory": "1Mi"}
    assert await resources({"cpu": "2", "memory": None}) == {"cpu": "2"}
    assert await resources(None) is None


async def test_custom_resources_take_no_strategic_patch(client: Client, pod_namespace: str) -> None:
    await client.create(CHAPERONS, chaperon(pod_namespace))
    with pytest.raises(Invalid) as raised:
        await client.patch(CHAPERONS, "c", {"spec": {}}, pod_namespace, strategic=True)

    assert raised.value.status == 415


async def test_a_replacement_drops_what_it_leaves_out(client: Client, pod_namespace: str) -> None:
    made = await client.create(MAPS, config_map(pod_namespace, "a", {"k": "v"}, labels={"x": "1"}))
    after = await client.replace(MAPS, config_map(pod_namespace, "a", {"l": "w"}))
    assert after["data"] == {"l": "w"}
    assert objects.labels(after) == {}
    assert objects.uid(after) == objects.uid(made)
    for stale in (made, config_map(pod_namespace, "a", uid="another")):
        with pytest.raises(Conflict):
            await client.replace(MAPS, stale)

    with pytest.raises(NotFound):
        await client.replace(MAPS, config_map(pod_namespace, "b"))


async def test_a_replacement_of_a_custom_resource_names_a_version(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(CHAPERONS, chaperon(pod_namespace))
    head = {"apiVersion": made["apiVersion"], "kind": made["kind"]}
    with pytest.raises(Invalid):
        await client.replace(CHAPERONS, {**head, **chaperon(pod_namespace)})

    await client.replace(CHAPERONS, {**made, "spec": {**made["spec"], "nodeName": "n"}})


async def test_an_immutable_config_map_cannot_change(client: Client, pod_namespace: str) -> None:
    await client.create(MAPS, {**config_map(pod_namespace, "a", {"k": "v"}), "immutable": True})
    with pytest.raises(Invalid) as raised:
        await client.patch(MAPS, "a", {"data": {"k": "w"}}, pod_namespace)

    assert raised.value.immutable
    await client.patch(MAPS, "a", {"metadata": {"labels": {"x": "1"}}}, pod_namespace)


async def test_an_apply_owns_what_it_names(client: Client, pod_namespace: str) -> None:
    await client.apply(MAPS, config_map(pod_namespace, "a", {"a": "1", "b": "2"}))
    await client.apply(MAPS, config_map(pod_namespace, "a", {"c": "3"}), manager="other")
    after = await client.apply(MAPS, config_map(pod_namespace, "a", {"a": "1"}))
    assert after["data"] == {"a": "1", "c": "3"}
    with pytest.raises(Conflict):
        await client.apply(MAPS, config_map(pod_namespace, "a", {"c": "4"}), force=False)

    forced = await client.apply(MAPS, config_map(pod_namespace, "a", {"a": "1", "c": "4"}))
    assert forced["data"] == {"a": "1", "c": "4"}
    same = await client.apply(MAPS, config_map(pod_namespace, "a", {"a": "1", "c": "4"}))
    assert objects.resource_version(same) == objects.resource_version(forced)


async def test_the_status_of_a_pod_can_be_written_with_its_annotations(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(kinds.PODS, pod(pod_namespace))
    body = {
        "metadata": {"annotations": {"x": "1"}},
        "spec": {"containers": [{"name": "main", "image": "other"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
    }
    after = await client.patch(
        kinds.PODS, "p", body, pod_namespace, subresource="status", strategic=True
    )
    assert objects.status(after)["podIP"] == "10.0.0.1"
    assert objects.annotations(after) == {"x": "1"}
    assert after["spec"] == made["spec"]
    assert objects.metadata(after)["generation"] == 1
    failed = {"status": {"phase": "Failed"}}
    after = await client.patch(kinds.PODS, "p", failed, pod_namespace)
    assert objects.status(after)["phase"] == "Running"
