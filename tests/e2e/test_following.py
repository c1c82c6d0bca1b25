"""What a pod refers to is in its target before it starts, is kept up to date, and goes with it."""

from __future__ import annotations

import base64
import uuid
from typing import Any

import pytest

from tests import kit
from tests.kit import Fleet
from vnode.api import keys, kinds, names, objects
from vnode.api.errors import NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube import watching
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions

C2 = names.virtual_node("default", "c2")


def config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "labels": {"mine": "yes"}}, "data": data}


def secret(name: str, **data: str) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": name}, "data": encoded}


def user_of(name: str, target: str = "c2", **spec: Any) -> Object:
    """Return a pod that reads ConfigMap `name`, or whatever `spec` says, in one target."""
    spec = spec or {"volumes": [{"name": "v", "configMap": {"name": name}}]}
    return kit.pod_in(target, f"{name}-{uuid.uuid4().hex[:5]}", **spec)


async def run(source: Client, pod: Object) -> Object:
    await source.create(kinds.PODS, pod, "default")
    return await kit.until_running(source, objects.name(pod))


async def end(source: Client, *pods: Object) -> None:
    for pod in pods:
        await source.delete(kinds.PODS, objects.name(pod), "default")


async def until_holds(client: Client, kind: Kind, name: str, **data: str) -> Object:
    return await kit.until_one(
        client, kind, name, "default", lambda obj: (obj.get("data") or {}) == data
    )


async def first_seen(client: Client, chaperon: Object, version: str) -> Object:
    """Return the chaperon as it was created, by a watch from before that."""
    selection = ListOptions(
        kinds.POD_CHAPERONS, "default", field_selector=f"metadata.name={objects.name(chaperon)}"
    )
    async for batch in watching.stream(client, selection, version):
        if batch:
            return batch[0].object

    raise AssertionError("the watch ended without it")


async def until_gone(client: Client, kind: Kind, name: str) -> None:
    await kit.until_gone(client, kind, "default", field_selector=f"metadata.name={name}")


def fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:6]}"


async def test_what_a_pod_refers_to_is_there_before_its_candidate(
    source: Client, c2: Client, c3: Client
) -> None:
    name = fresh("first")
    await source.create(kinds.CONFIG_MAPS, config_map(name, colour="red"), "default")
    await source.create(kinds.SECRETS, secret(name, password="pw"), "default")
    version = (await c2.list_at(kinds.CONFIG_MAPS, "default"))[1]
    env = [{"name": "PW", "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}}]
    container = {"name": "main", "image": "busybox", "env": env}
    volumes = [{"name": "v", "projected": {"sources": [{"configMap": {"name": name}}]}}]
    pod = await run(source, user_of(name, containers=[container], volumes=volumes))
    copy = await c2.get(kinds.CONFIG_MAPS, name, "default")
    assert copy["data"] == {"colour": "red"}
    assert objects.labels(copy)["mine"] == "yes"
    original = await source.get(kinds.CONFIG_MAPS, name, "default")
    assert objects.labels(copy)[keys.PARENT_UID] == objects.uid(original)
    hidden = await c2.get(kinds.SECRETS, name, "default")
    assert hidden["data"] == secret(name, password="pw")["data"]
    (chaperon,) = await c2.list(
        kinds.POD_CHAPERONS, "default", label_selector=f"{keys.PARENT_UID}={objects.uid(pod)}"
    )
    created = int(objects.resource_version(copy)), int(objects.resource_version(hidden))
    first = await first_seen(c2, chaperon, version)
    assert max(created) < int(objects.resource_version(first))

    with pytest.raises(NotFound):
        await c3.get(kinds.SECRETS, name, "default")

    await end(source, pod)
    for kind in (kinds.CONFIG_MAPS, kinds.SECRETS):
        await until_gone(c2, kind, name)


async def test_a_copy_is_kept_up_to_date_and_goes_with_its_last_user(
    source: Client, c2: Client
) -> None:
    name = fresh("kept")
    await source.create(kinds.CONFIG_MAPS, config_map(name, a="1"), "default")
    one, two = [await run(source, user_of(name)) for _ in range(2)]
    await until_holds(c2, kinds.CONFIG_MAPS, name, a="1")
    await source.patch(kinds.CONFIG_MAPS, name, {"data": {"a": None, "b": "2"}}, "default")
    copy = await until_holds(c2, kinds.CONFIG_MAPS, name, b="2")
    await end(source, one)
    await kit.until_gone(
        source, kinds.PODS, "default", field_selector=f"metadata.name={objects.name(one)}"
    )
    await source.patch(kinds.CONFIG_MAPS, name, {"data": {"b": "3"}}, "default")
    later = await until_holds(c2, kinds.CONFIG_MAPS, name, b="3")
    assert objects.uid(later) == objects.uid(copy)
    await c2.patch(kinds.CONFIG_MAPS, name, {"data": {"b": "tampered"}}, "default")
    await until_holds(c2, kinds.CONFIG_MAPS, name, b="3")
    await c2.delete(kinds.CONFIG_MAPS, name, "default")
    await until_holds(c2, kinds.CONFIG_MAPS, name, b="3")
    await end(source, two)
    await until_gone(c2, kinds.CONFIG_MAPS, name)
    await source.get(kinds.CONFIG_MAPS, name, "default")


async def test_labels_and_annotations_follow_and_go_without_a_change_of_contents(
    source: Client, c2: Client
) -> None:
    name = fresh("marks")
    await source.create(kinds.CONFIG_MAPS, config_map(name, a="1"), "default")
    await source.create(kinds.SECRETS, secret(name, a="1"), "default")
    spec = {"selector": {"app": name}, "ports": [{"port": 80}]}
    await source.create(kinds.SERVICES, {"metadata": {"name": name}, "spec": spec}, "default")
    pull = [{"name": name}]
    volumes = [{"name": "v", "configMap": {"name": name}}]
    body = user_of(name, volumes=volumes, imagePullSecrets=pull)
    body["metadata"]["labels"] = {"app": name}
    pod = await run(source, body)
    every = (kinds.CONFIG_MAPS, kinds.SECRETS, kinds.SERVICES)
    for kind in every:
        copy = await kit.until_one(c2, kind, name, "default", lambda _: True)
        theirs = {"metadata": {"labels": {"theirs": "1"}}}
        await c2.patch(kind, name, theirs, "default")
        marks = {"labels": {"mine": "new", "more": "1"}, "annotations": {"note": "n"}}
        await source.patch(kind, name, {"metadata": marks}, "default")
        now = await kit.until_one(
            c2, kind, name, "default", lambda o: objects.labels(o).get("more") == "1"
        )
        assert objects.uid(now) == objects.uid(copy)
        assert objects.labels(now).items() >= {"mine": "new", "theirs": "1"}.items()
        assert objects.annotations(now)["note"] == "n"
        gone = {"labels": {"mine": None, "more": None}, "annotations": {"note": None}}
        await source.patch(kind, name, {"metadata": gone}, "default")
        now = await kit.until_one(
            c2, kind, name, "default", lambda o: "more" not in objects.labels(o)
        )
        assert objects.labels(now)["theirs"] == "1"
        assert "note" not in objects.annotations(now)

    await end(source, pod)
    for kind in every:
        await until_gone(c2, kind, name)
        await source.delete(kind, name, "default")


async def test_what_is_missing_follows_as_soon_as_it_is_made(source: Client, c2: Client) -> None:
    name = fresh("late")
    pod = await run(source, user_of(name))
    await source.create(kinds.CONFIG_MAPS, config_map(name, late="yes"), "default")
    await until_holds(c2, kinds.CONFIG_MAPS, name, late="yes")
    await source.delete(kinds.CONFIG_MAPS, name, "default")
    await until_gone(c2, kinds.CONFIG_MAPS, name)
    await source.create(
        kinds.CONFIG_MAPS, {**config_map(name, again="1"), "immutable": True}, "default"
    )
    await until_holds(c2, kinds.CONFIG_MAPS, name, again="1")
    await source.delete(kinds.CONFIG_MAPS, name, "default")
    await source.create(kinds.CONFIG_MAPS, config_map(name, again="2"), "default")
    await until_holds(c2, kinds.CONFIG_MAPS, name, again="2")
    await end(source, pod)
    await until_gone(c2, kinds.CONFIG_MAPS, name)


async def test_a_foreign_object_is_left_alone_and_the_pod_says_so(
    source: Client, c2: Client
) -> None:
    name = fresh("foreign")
    theirs = await c2.create(kinds.CONFIG_MAPS, config_map(name, whose="theirs"), "default")
    await source.create(kinds.CONFIG_MAPS, config_map(name, whose="ours"), "default")
    pod = await run(source, user_of(name))
    about = f"involvedObject.name={objects.name(pod)},reason=NotFollowed"
    await kit.until_event(source, "default", about, "is not from this cluster")
    stuck = user_of(name, volumes=objects.spec(user_of(name))["volumes"], nodeSelector={"no": "no"})
    await source.create(kinds.PODS, stuck, "default")
    await kit.until_one(
        source,
        kinds.PODS,
        objects.name(stuck),
        "default",
        lambda p: name in str((objects.condition(p, "PodScheduled") or {}).get("message")),
    )
    await end(source, pod, stuck)
    await kit.until_gone(source, kinds.PODS, "default")
    assert await c2.get(kinds.CONFIG_MAPS, name, "default") == theirs
    await c2.delete(kinds.CONFIG_MAPS, name, "default")


async def test_a_restarted_agent_updates_removes_and_writes_nothing_else(
    fleet: Fleet, source: Client, c2: Client
) -> None:
    same, changed, unused = (fresh(name) for name in ("same", "changed", "unused"))
    for name in (same, changed, unused):
        await source.create(kinds.CONFIG_MAPS, config_map(name, n="1"), "default")

    pods = [await run(source, user_of(name)) for name in (same, changed, unused)]
    before = await c2.get(kinds.CONFIG_MAPS, same, "default")
    fleet.run("stop", "c1", "agent", "--kill")
    await source.patch(kinds.CONFIG_MAPS, changed, {"data": {"n": "2"}}, "default")
    for entry in (objects.name(pods[2]),):
        await source.patch(kinds.PODS, entry, {"metadata": {"finalizers": []}}, "default")
        await source.delete(kinds.PODS, entry, "default", grace=0)

    fleet.run("start", "c1", "agent")
    await until_holds(c2, kinds.CONFIG_MAPS, changed, n="2")
    await until_gone(c2, kinds.CONFIG_MAPS, unused)
    assert await c2.get(kinds.CONFIG_MAPS, same, "default") == before
    await end(source, *pods[:2])
    for name in (same, changed):
        await until_gone(c2, kinds.CONFIG_MAPS, name)


async def test_a_source_that_may_not_write_secrets_is_told(source: Client, c2: Client) -> None:
    name = fresh("denied")
    await source.create(kinds.SECRETS, secret(name, a="1"), "default")
    role = await c2.get(kinds.CLUSTER_ROLES, "admiralty-source")
    fewer = [
        {**rule, "resources": [r for r in rule["resources"] if r != "secrets"]}
        for rule in role["rules"]
    ]
    await c2.patch(kinds.CLUSTER_ROLES, "admiralty-source", {"rules": fewer})
    try:
        pod = user_of(name, imagePullSecrets=[{"name": name}])
        await source.create(kinds.PODS, pod, "default")
        await kit.until_one(
            source,
            kinds.PODS,
            objects.name(pod),
            "default",
            lambda p: "may not follow" in str(objects.condition(p, "PodScheduled")),
        )
        await end(source, pod)
    finally:
        await c2.patch(kinds.CLUSTER_ROLES, "admiralty-source", {"rules": role["rules"]})
