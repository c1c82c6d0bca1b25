"""What holds for every API server: run against a real kube-apiserver and against the one in memory.

A module of tests imports these and has two fixtures: `client`, with an administrator's rights, and
`pod_namespace`, in which pods can be created and which no webhook looks at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from vnode.api import kinds, objects
from vnode.api.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    NotFound,
)
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import Event, Selection

MAPS = kinds.CONFIG_MAPS
CHAPERONS = kinds.POD_CHAPERONS


def config_map(namespace: str, name: str = "a", /, data: Any = None, **metadata: Any) -> Object:
    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "data": data or {}}


def pod(namespace: str, name: str = "p", /, node: str = "", **metadata: Any) -> Object:
    """A pod that no scheduler binds."""
    containers = [{"name": "main", "image": "busybox"}]
    spec: Object = {"containers": containers, "schedulerName": "example"}
    if node:
        spec["nodeName"] = node

    return {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}


def chaperon(namespace: str, name: str = "c", /, **metadata: Any) -> Object:
    return {**pod(namespace, name, **metadata)}


class Events:
    """The events of a watch, one by one."""

    def __init__(self, batches: AsyncIterator[list[Event]]) -> None:
        self._batches = batches
        self._waiting: list[Event] = []

    async def next(self) -> tuple[str, Object]:
        """The next event that is no bookmark."""
        async with asyncio.timeout(20):
            while not self._waiting:
                batch = await anext(self._batches)
                self._waiting += [e for e in batch if e.type != watching.BOOKMARK]

        event = self._waiting.pop(0)
        return event.type, event.object


@asynccontextmanager
async def watched(
    client: Client, kind: Kind, namespace: str, version: str = "", **options: Any
) -> AsyncIterator[Events]:
    """Watch from a version, or from now on."""
    if not version:
        _items, version = await client.list_at(kind, namespace)

    async with aclosing(
        watching.stream(client, Selection(kind, namespace, **options), version)
    ) as batches:
        assert await anext(batches) == []
        yield Events(batches)


async def versions(client: Client, kind: Kind, obj: Object) -> tuple[str, int | None]:
    """The present version and generation of an object."""
    found = await client.get(kind, objects.name(obj), objects.namespace(obj) or None)
    return objects.resource_version(found), objects.metadata(found).get("generation")


# Creating


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


async def test_a_new_pod_has_defaults_and_a_status_of_the_servers(
    client: Client, pod_namespace: str
) -> None:
    made = await client.create(kinds.PODS, {**pod(pod_namespace), "status": {"phase": "Running"}})
    spec = objects.spec(made)
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["restartPolicy"] == "Always"
    assert spec["serviceAccountName"] == "default"
    assert objects.status(made)["phase"] == "Pending"
    assert objects.metadata(made)["generation"] == 1


# Updating


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
async def test_a_patch_of_another_version_is_a_conflict_and_of_another_uid_invalid(
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

    with pytest.raises(Invalid) as raised:
        await patch(uid="another")

    assert raised.value.immutable
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
    assert _types(after) == {one["type"], two["type"]}
    after = await patch({"status": {"conditions": [{**one, "status": "False"}]}}, "status")
    assert (objects.condition(after, one["type"]) or {})["status"] == "False"
    gone = {"$patch": "delete", "type": one["type"]}
    after = await patch({"status": {"conditions": [gone]}}, "status")
    assert _types(after) == {two["type"]}
    after = await patch({"status": {"conditions": [{"$patch": "replace"}, one]}}, "status")
    assert _types(after) == {one["type"]}


def _types(obj: Object) -> set[str]:
    return {entry["type"] for entry in objects.status(obj)["conditions"]}


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


# Subresources and generations


async def test_the_status_of_a_custom_resource_has_its_own_door(
    client: Client, pod_namespace: str
) -> None:
    body = {**chaperon(pod_namespace), "status": {"phase": "Running"}}
    made = await client.create(CHAPERONS, body)
    assert "status" not in made
    both = {"metadata": {"labels": {"x": "1"}}, "spec": {"nodeName": "n"}}
    failed = {**both, "status": {"phase": "Failed"}}
    after = await client.patch(CHAPERONS, "c", failed, pod_namespace, subresource="status")
    assert objects.status(after)["phase"] == "Failed"
    assert after["spec"] == made["spec"]
    assert objects.labels(after) == {}
    assert objects.metadata(after)["generation"] == 1
    after = await client.patch(
        CHAPERONS, "c", {**both, "status": {"phase": "Running"}}, pod_namespace
    )
    assert objects.status(after)["phase"] == "Failed"
    assert objects.labels(after) == {"x": "1"}
    assert objects.metadata(after)["generation"] == 2


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


async def test_a_patch_of_the_status_of_a_pod_can_be_of_one_uid_but_not_that_of_a_custom_resource(
    client: Client, pod_namespace: str
) -> None:
    """Of what is sent for the status of a custom resource, the API server reads no metadata but
    the version: who must not write to a namesake has to name that.
    """

    async def patch(kind: Kind, **metadata: str) -> Object:
        body = {"metadata": metadata, "status": {"phase": "Running"}}
        return await client.patch(kind, "p", body, pod_namespace, subresource="status")

    for kind in (kinds.PODS, CHAPERONS):
        await client.create(kind, pod(pod_namespace))
        with pytest.raises(Conflict):
            await patch(kind, resourceVersion="1")

    with pytest.raises(Invalid):
        await patch(kinds.PODS, uid="another")

    after = await patch(CHAPERONS, uid="another")
    assert objects.uid(after) not in ("", "another")
    assert objects.status(after)["phase"] == "Running"


async def test_the_spec_of_a_pod_can_hardly_change(client: Client, pod_namespace: str) -> None:
    await client.create(kinds.PODS, pod(pod_namespace))
    with pytest.raises(Invalid):
        await client.patch(kinds.PODS, "p", {"spec": {"hostNetwork": True}}, pod_namespace)

    body = {"spec": {"containers": [{"name": "main", "image": "other"}]}}
    after = await client.patch(kinds.PODS, "p", body, pod_namespace, strategic=True)
    assert objects.spec(after)["containers"][0]["image"] == "other"
    assert objects.metadata(after)["generation"] == 2


async def test_a_pod_gets_ephemeral_containers_through_their_subresource(
    client: Client, pod_namespace: str
) -> None:
    await client.create(kinds.PODS, pod(pod_namespace))
    body = {"spec": {"ephemeralContainers": [{"name": "shell", "image": "busybox"}]}}
    with pytest.raises(Invalid):
        await client.patch(kinds.PODS, "p", body, pod_namespace, strategic=True)

    after = await client.patch(
        kinds.PODS, "p", body, pod_namespace, subresource="ephemeralcontainers", strategic=True
    )
    (entry,) = objects.spec(after)["ephemeralContainers"]
    assert entry["name"] == "shell"
    assert objects.metadata(after)["generation"] == 2


async def test_a_pod_is_resized_through_its_subresource(client: Client, pod_namespace: str) -> None:
    requests = {"requests": {"cpu": "1"}}
    body = pod(pod_namespace)
    body["spec"]["containers"][0]["resources"] = requests
    await client.create(kinds.PODS, body)
    change = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    with pytest.raises(Invalid):
        await client.patch(kinds.PODS, "p", change, pod_namespace, strategic=True)

    after = await client.patch(
        kinds.PODS, "p", change, pod_namespace, subresource="resize", strategic=True
    )
    assert objects.spec(after)["containers"][0]["resources"]["requests"] == {"cpu": "2"}
    assert objects.metadata(after)["generation"] == 2


def binding(name: str, node: str = "n", **metadata: Any) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": target,
    }


async def test_a_pod_is_bound_once(client: Client, pod_namespace: str) -> None:
    async def bind(body: Object) -> Object:
        return await client.create(kinds.PODS, body, pod_namespace, name="p", subresource="binding")

    with pytest.raises(NotFound):
        await bind(binding("p"))

    await client.create(kinds.PODS, pod(pod_namespace))
    with pytest.raises(Conflict):
        await bind(binding("p", uid="another"))

    await bind(binding("p", annotations={"x": "1"}))
    after = await client.get(kinds.PODS, "p", pod_namespace)
    assert objects.spec(after)["nodeName"] == "n"
    assert objects.annotations(after) == {"x": "1"}
    assert (objects.condition(after, "PodScheduled") or {})["status"] == "True"
    assert objects.metadata(after)["generation"] == 1
    with pytest.raises(Conflict):
        await bind(binding("p", "other"))


async def test_a_pod_with_gates_or_at_its_end_is_not_bound(
    client: Client, pod_namespace: str
) -> None:
    gated = pod(pod_namespace, "gated")
    gated["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    await client.create(kinds.PODS, gated)
    await client.create(kinds.PODS, pod(pod_namespace, "ending", finalizers=["a.b/c"]))
    await client.delete(kinds.PODS, "ending", pod_namespace)
    for name in ("gated", "ending"):
        with pytest.raises(Conflict):
            await client.create(
                kinds.PODS, binding(name), pod_namespace, name=name, subresource="binding"
            )

    await client.patch(kinds.PODS, "gated", {"spec": {"schedulingGates": None}}, pod_namespace)
    await client.create(
        kinds.PODS, binding("gated"), pod_namespace, name="gated", subresource="binding"
    )
    none = {"metadata": {"finalizers": None}}
    await client.patch(kinds.PODS, "ending", none, pod_namespace)


async def test_labels_of_a_node_can_be_written_with_its_status(
    client: Client, pod_namespace: str
) -> None:
    name = f"n-{pod_namespace}"
    body = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "1"}}}
    made = await client.create(kinds.NODES, body)
    assert objects.status(made)["capacity"] == {"cpu": "1"}
    change: dict[str, Object] = {
        "metadata": {"name": name, "labels": {"x": "1"}},
        "spec": {"unschedulable": True},
        "status": {"capacity": {"cpu": "2"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    after = await client.apply(kinds.NODES, change, subresource="status")
    assert objects.status(after)["capacity"] == {"cpu": "2"}
    assert objects.labels(after).get("x") == "1"
    assert "unschedulable" not in objects.spec(after)
    change["status"]["conditions"] = [{"type": "Other", "status": "True"}]
    after = await client.apply(kinds.NODES, change, subresource="status")
    assert _types(after) == {"Other"}
    await client.delete(kinds.NODES, name)


async def test_a_token_is_made_for_a_service_account(client: Client, pod_namespace: str) -> None:
    body = {"spec": {"expirationSeconds": 600, "audiences": ["a"]}}
    answer = await client.create(
        kinds.SERVICE_ACCOUNTS, body, pod_namespace, name="default", subresource="token"
    )
    assert objects.status(answer)["token"]
    assert objects.parse_timestamp(objects.status(answer)["expirationTimestamp"])
    short = {"spec": {"expirationSeconds": 599}}
    for error, name, asked in ((NotFound, "absent", body), (Invalid, "default", short)):
        with pytest.raises(error):
            await client.create(
                kinds.SERVICE_ACCOUNTS, asked, pod_namespace, name=name, subresource="token"
            )
