"""A controller that keeps virtual nodes on a real control plane, with links and Targets by hand."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests import kit
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.store import Store
from vnode.nodes import controller as nodes
from vnode.nodes.controller import NodeController
from vnode.nodes.lease_renewal import LeaseRenewal
from vnode.nodes.managed_clusters import ManagedClusters
from vnode.runtime.link import Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links
from vnode.runtime.stall_guard import StallGuard

SUMMARY = {
    "metadata": {
        "name": keys.SUMMARY_NAME,
        "labels": {
            "topology.kubernetes.io/region": "r1",
            "example.com/disk": "fast",
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
        self._listeners: list[Callable[[TargetKey], None]] = []

    async def wait_synced(self) -> None:
        pass

    def keys(self) -> set[TargetKey]:
        return self.found

    def fits(self, _key: TargetKey) -> bool:
        return True

    def knows(self, _namespace: str) -> bool:
        return True

    def exists(self, key: TargetKey) -> bool:
        return key in self.found

    def subscribe_each(self, changed: Callable[[TargetKey], None]) -> None:
        self._listeners.append(changed)

    def set(self, *found: TargetKey) -> None:
        changed = self.found ^ set(found)
        self.found = set(found)
        for listener in self._listeners:
            for key in changed:
                listener(key)


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


def show(link: Link, summary: Object) -> None:
    """Have a link know that summary."""
    summaries: Any = link.summaries
    summaries.show(summary)


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
async def running(
    client: Client,
    links: Links,
    targets: FixedTargets,
    members: ManagedClusters | None = None,
    leases: LeaseRenewal | None = None,
) -> AsyncIterator[Any]:
    """Run a controller; the Leases are renewed beside it, or by whoever gives `leases`."""
    renewal = leases or LeaseRenewal(SystemClock())
    guard = StallGuard()
    beside = () if leases else (renewal.run(client, guard), guard.run())
    known = nodes.informer(client)
    controller = NodeController(
        client,
        known,
        links,
        targets,
        advertise_address="10.1.2.3",
        port_of=lambda _name: 10251,
        managed_clusters=members,
        leases=renewal,
        clock=SystemClock(),
    )
    async with asyncio.TaskGroup() as group:
        parts = (known.run(), controller.run(), *beside)
        tasks = [group.create_task(part) for part in parts]
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
    show(link, SUMMARY)
    links.add(link)
    return links, link
