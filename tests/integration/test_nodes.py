"""Virtual nodes on a real control plane, whose node lifecycle controller has its say too."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.store import Store
from vnode.nodes import controller as nodes
from vnode.nodes import missing_links
from vnode.nodes.controller import NodeController
from vnode.runtime.links import CONNECTING, Link, LinkHealth, Links, TargetKey

SUMMARY = {
    "metadata": {
        "name": keys.SUMMARY_NAME,
        "labels": {
            "topology.kubernetes.io/region": "r1",
            "secret/thing": "x",
            keys.PROVIDER_LABEL: "other",
        },
    },
    "capacity": {"cpu": "8", "memory": "16Gi", "pods": 220},
    "allocatable": {"cpu": "7500m", "memory": "15Gi", "pods": 220, "broken": "much"},
}


class FixedTargets:
    """Target objects by hand."""

    def __init__(self, *found: TargetKey) -> None:
        self.found = set(found)
        self._listeners: list[asyncio.Event] = []

    async def wait_synced(self) -> None:
        pass

    def keys(self) -> set[TargetKey]:
        return self.found

    def fits(self, _key: TargetKey) -> bool:
        return True

    def subscribe_keys(self, changed: asyncio.Event) -> None:
        self._listeners.append(changed)

    def set(self, *found: TargetKey) -> None:
        self.found = set(found)
        for listener in self._listeners:
            listener.set()


class FixedSummaries:
    """What a link knows of its target's summary, by hand."""

    def __init__(self) -> None:
        self.store = Store()
        self.synced = asyncio.Event()
        self._handlers: list[Any] = []

    def subscribe(self, handler: Any) -> None:
        self._handlers.append(handler)

    def show(self, summary: Object) -> None:
        self.synced.set()
        old = self.store.put(summary)
        for handler in self._handlers:
            handler(old, summary)


def make_link(target: TargetKey, client: Client, excluded: Any = None) -> Link:
    chaperons: Any = type("Chaperons", (), {"synced": asyncio.Event(), "store": Store()})()
    chaperons.synced.set()
    summaries: Any = FixedSummaries()
    health = LinkHealth(True, "Connected", "the target answers", SystemClock().now())
    return Link(
        target,
        client,
        chaperons=chaperons,
        summaries=summaries,
        health=health,
        labels_excluded=excluded,
    )


@pytest.fixture
async def target(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[TargetKey]:
    key = TargetKey("ns", "t" + format(zlib.crc32(request.node.name.encode()), "x"))
    yield key
    for node in await client.list(kinds.NODES, label_selector=f"{keys.TARGET_NAME}={key.name}"):
        await client.delete(kinds.NODES, objects.name(node))


@asynccontextmanager
async def running(client: Client, links: Links, targets: FixedTargets) -> AsyncIterator[Any]:
    known = nodes.informer(client)
    controller = NodeController(
        client,
        known,
        links,
        targets,
        advertise_address="10.1.2.3",
        port_of=lambda _name: 10251,
        clock=SystemClock(),
    )
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part.run()) for part in (known, controller)]
        try:
            await known.synced.wait()
            yield controller
        finally:
            for task in tasks:
                task.cancel()


def ready(node: Object) -> str:
    return str((objects.condition(node, "Ready") or {}).get("status"))


def taints(node: Object) -> list[Object]:
    return objects.spec(node).get("taints") or []


def capacity(node: Object) -> Object:
    return objects.status(node).get("capacity") or {}


async def until(client: Client, target: TargetKey, condition: Any) -> Object:
    return await kit.until_one(client, kinds.NODES, target.node_name, "", condition)


async def connected(client: Client, target: TargetKey) -> tuple[Links, Link]:
    links, link = Links(), make_link(target, client)
    link.summaries.show(SUMMARY)
    links.add(link)
    return links, link


async def test_a_node_shows_its_target(client: Client, target: TargetKey) -> None:
    links = Links()
    link = make_link(target, client, lambda text: text.startswith("secret/"))
    links.add(link)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")
        link.summaries.show(SUMMARY)
        node = await until(client, target, lambda node: "cpu" in capacity(node))

    labels, status = objects.labels(node), objects.status(node)
    assert labels["type"] == "virtual-kubelet"
    assert labels["topology.kubernetes.io/region"] == "r1"
    assert labels[keys.PROVIDER_LABEL] == keys.PROVIDER
    assert labels[keys.TARGET_NAME] == target.name
    assert "secret/thing" not in labels
    assert objects.annotations(node)[keys.KUBELET_PORT] == "10251"
    assert keys.PROVIDER_TAINT in taints(node)
    assert status["allocatable"] == {"cpu": "7500m", "memory": "15Gi", "pods": "220"}
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10251}}
    assert status["addresses"] == [{"type": "InternalIP", "address": "10.1.2.3"}]
    assert status["nodeInfo"]["kubeletVersion"].startswith("v1.")
    lease = await client.get(kinds.LEASES, target.node_name, "kube-node-lease")
    assert lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"][0]["uid"] == objects.uid(node)


async def test_a_lost_target_makes_its_node_not_ready_with_the_reason(
    client: Client, target: TargetKey
) -> None:
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")
        link.set_health(LinkHealth(False, "Unreachable", "refused", SystemClock().now()))
        node = await until(client, target, lambda node: ready(node) == "False")
        condition = objects.condition(node, "Ready") or {}
        assert (condition["reason"], condition["message"]) == ("Unreachable", "refused")
        assert capacity(node)["cpu"] == "8"
        await until(
            client,
            target,
            lambda node: any(
                taint["key"] == "node.kubernetes.io/not-ready" for taint in taints(node)
            ),
        )
        link.set_health(LinkHealth(True, "Connected", "it answers", SystemClock().now()))
        await until(
            client,
            target,
            lambda node: ready(node) == "True" and taints(node) == [keys.PROVIDER_TAINT],
        )


async def test_what_others_write_on_a_node_stays(client: Client, target: TargetKey) -> None:
    links, link = await connected(client, target)
    name = target.node_name
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")
        condition = {"type": "Problem", "status": "True", "reason": "Test", "message": "theirs"}
        await client.apply(
            kinds.NODES,
            {"metadata": {"name": name}, "status": {"conditions": [condition]}},
            subresource="status",
            manager="someone",
        )
        taint = {"key": "theirs", "value": "x", "effect": "NoSchedule"}
        await client.patch(
            kinds.NODES,
            name,
            {
                "metadata": {"labels": {"mine": "yes", "type": "edited"}},
                "spec": {"taints": [taint], "unschedulable": True},
            },
        )
        node = await until(client, target, lambda node: keys.PROVIDER_TAINT in taints(node))
        assert taint in taints(node)
        changed = {**SUMMARY, "metadata": {"name": keys.SUMMARY_NAME, "labels": {"new": "1"}}}
        link.summaries.show(changed)
        node = await until(client, target, lambda node: "new" in objects.labels(node))

    assert objects.labels(node)["mine"] == "yes"
    assert objects.labels(node)["type"] == "virtual-kubelet"
    assert "topology.kubernetes.io/region" not in objects.labels(node)
    assert objects.spec(node)["unschedulable"] is True
    assert (objects.condition(node, "Problem") or {})["message"] == "theirs"


async def test_a_deleted_node_is_made_again_with_its_lease(
    client: Client, target: TargetKey
) -> None:
    links, _link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        old = await until(client, target, lambda node: ready(node) == "True")
        await client.delete(kinds.NODES, target.node_name)
        new = await until(
            client,
            target,
            lambda node: objects.uid(node) != objects.uid(old) and ready(node) == "True",
        )
        await kit.until_one(
            client,
            kinds.LEASES,
            target.node_name,
            "kube-node-lease",
            lambda lease: lease["metadata"]["ownerReferences"][0]["uid"] == objects.uid(new),
        )


async def test_a_node_goes_with_its_target_and_leftovers_go_at_the_start(
    client: Client, target: TargetKey
) -> None:
    links, link = await connected(client, target)
    targets = FixedTargets(target)
    async with running(client, links, targets):
        await until(client, target, lambda node: ready(node) == "True")
        targets.set()
        links.remove(link)
        await kit.until_gone(
            client, kinds.NODES, field_selector=f"metadata.name={target.node_name}"
        )
        targets.set(target)
        links.add(link)
        await until(client, target, lambda node: ready(node) == "True")

    async with running(client, Links(), FixedTargets()):
        await kit.until_gone(
            client, kinds.NODES, field_selector=f"metadata.name={target.node_name}"
        )


async def test_nodes_that_we_did_not_make_are_left_alone(client: Client) -> None:
    stranger = {"metadata": {"name": "stranger", "labels": {keys.PROVIDER_LABEL: keys.PROVIDER}}}
    await client.create(kinds.NODES, stranger)
    async with running(client, Links(), FixedTargets()) as controller:
        controller.refresh("stranger")
        await asyncio.sleep(0.3)
        await client.get(kinds.NODES, "stranger")

    await client.delete(kinds.NODES, "stranger")


async def test_a_restart_changes_nothing_until_the_target_had_time_to_connect(
    client: Client, target: TargetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    links, _link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        before = await until(client, target, lambda node: ready(node) == "True")

    monkeypatch.setattr(missing_links, "CONNECT_TIMEOUT", 1.5)
    async with running(client, Links(), FixedTargets(target)):
        await asyncio.sleep(0.7)
        assert ready(await client.get(kinds.NODES, target.node_name)) == "True"
        node = await until(client, target, lambda node: ready(node) == "False")

    condition = objects.condition(node, "Ready") or {}
    assert condition["reason"] == "TargetNotConnected"
    assert "kubectl describe target" in condition["message"]
    assert capacity(node) == capacity(before)
    assert objects.labels(node) == objects.labels(before)


async def test_a_restart_changes_nothing_until_the_target_was_asked(
    client: Client, target: TargetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen with fifty Targets: some Nodes were not ready for a moment at each start of the agent,
    because what the target has was read before anybody had probed it."""
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")

    reasons = applied_reasons(client, monkeypatch)
    healthy = link.health
    link.set_health(LinkHealth(False, CONNECTING, "connecting to the target", healthy.since))
    async with running(client, links, FixedTargets(target)) as controller:
        controller.refresh(target.node_name)
        await asyncio.sleep(0.5)
        link.set_health(healthy)
        await asyncio.sleep(0.2)
        link.set_health(LinkHealth(False, "Unreachable", "no answer", healthy.since))
        await until(client, target, lambda node: ready(node) == "False")

    assert reasons == ["Unreachable"]


def applied_reasons(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reasons of the Ready conditions that are written from now on."""
    reasons: list[str] = []
    apply = client.apply

    async def spy(kind: Kind, obj: Object, **options: Any) -> Object:
        if ready_condition := objects.condition(obj, "Ready"):
            reasons.append(ready_condition["reason"])

        return await apply(kind, obj, **options)

    monkeypatch.setattr(client, "apply", spy)
    return reasons


async def test_a_node_that_is_right_is_not_written(client: Client, target: TargetKey) -> None:
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)) as controller:
        await until(client, target, lambda node: ready(node) == "True")
        await asyncio.sleep(1)
        before = await client.get(kinds.NODES, target.node_name)
        for _ in range(20):
            link.summaries.show(SUMMARY)
            controller.refresh(target.node_name)
            await asyncio.sleep(0.02)

        after = await client.get(kinds.NODES, target.node_name)

    assert objects.resource_version(before) == objects.resource_version(after)


async def test_a_restart_writes_only_what_has_changed(
    client: Client, target: TargetKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen with fifty Targets: each start of the agent wrote all Nodes twice."""
    links, _link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        await until(client, target, lambda node: ready(node) == "True")

    applied: list[Object] = []
    apply = client.apply

    async def spy(kind: Kind, obj: Object, **options: Any) -> Object:
        applied.append(obj)
        return await apply(kind, obj, **options)

    monkeypatch.setattr(client, "apply", spy)
    links, link = await connected(client, target)
    async with running(client, links, FixedTargets(target)):
        labels = {"metadata": {"name": keys.SUMMARY_NAME, "labels": {"new": "1"}}}
        link.summaries.show({**SUMMARY, **labels})
        node = await until(client, target, lambda node: "new" in objects.labels(node))
        assert "topology.kubernetes.io/region" not in objects.labels(node)
        assert ["status" in obj for obj in applied] == [False]
        link.summaries.show({**SUMMARY, **labels, "capacity": {"cpu": "77"}})
        node = await until(client, target, lambda node: capacity(node)["cpu"] == "77")

    assert "memory" not in capacity(node)
    assert ["status" in obj for obj in applied] == [False, True]


async def test_several_sizes_of_huge_pages_are_shown_together(
    client: Client, target: TargetKey
) -> None:
    links, link = await connected(client, target)
    pages = {"cpu": "1", "hugepages-2Mi": "64Mi", "hugepages-1Gi": "2Gi"}
    link.summaries.show({**SUMMARY, "capacity": pages, "allocatable": pages})
    async with running(client, links, FixedTargets(target)):
        node = await until(client, target, lambda node: "hugepages-1Gi" in capacity(node))

    assert objects.status(node)["allocatable"] == pages
