"""Hostility in the random runs: it acts, leaves nothing, and sees what it must not have touched."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

import pytest

from tests import background
from tests.apiserver.server import APIServer
from tests.faults.harness import CLUSTERS, Harness
from tests.faults.hostility import BYSTANDER, PLANTS, TENANT, Hostility
from tests.faults.plan import FAULT_PROXIES, SOURCE
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock

pytestmark = pytest.mark.looptime

PROXY = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}}
MADE = {SOURCE: (TENANT, (kinds.TARGETS, kinds.SECRETS, kinds.PODS, kinds.SERVICES))}


class Clusters:
    """Of a harness what hostility uses."""

    def __init__(self, clock: Clock) -> None:
        self.servers = {name: APIServer(name, clock) for name in CLUSTERS}
        self.clients = {name: server.client() for name, server in self.servers.items()}
        self.source = self.clients[SOURCE]
        self.urls = dict.fromkeys(FAULT_PROXIES, "https://127.0.0.1:1")

    def made(self, cluster: str) -> list[dict[str, Any]]:
        """List what hostility has made there."""
        namespace, of = MADE.get(cluster, (PLANTS, (kinds.POD_CHAPERONS,)))
        found = [obj for kind in of for obj in self.servers[cluster].all(kind)]
        return [obj for obj in found if objects.namespace(obj) == namespace]


@pytest.fixture
async def clusters(clock):
    return Clusters(clock)


async def act(clusters: Clusters, seconds: float, stopped: str = "") -> Hostility:
    """Have it act for a while, maybe beside an API server that does not answer."""
    hostility = Hostility(cast("Harness", clusters), random.Random(1), lambda: [PROXY])
    await hostility.begin()
    if stopped:
        clusters.servers[stopped].stop()

    async with background.running(hostility.run()):
        await asyncio.sleep(seconds)

    if stopped:
        clusters.servers[stopped].start()

    return hostility


async def test_it_acts_everywhere_and_leaves_nothing(clusters):
    hostility = await act(clusters, 100)
    assert len(hostility.done) == 5
    assert all(clusters.made(name) for name in CLUSTERS)
    planted = [objects.labels(obj).get(keys.PARENT_UID) for obj in clusters.made("c2")]
    assert "u" in planted
    assert await hostility.end() == []
    assert not any(clusters.made(name) for name in CLUSTERS)


async def test_what_is_broken_just_now_does_not_end_it(clusters):
    hostility = await act(clusters, 100, stopped="c2")
    assert clusters.made("c3")
    assert not clusters.made("c2")
    assert await hostility.end() == []


async def test_what_cannot_be_removed_is_told(clusters):
    hostility = await act(clusters, 100)
    held = clusters.made(SOURCE)[0]
    kind = next(kind for kind in MADE[SOURCE][1] if kind.kind == held["kind"])
    clusters.servers[SOURCE].change(
        kind, objects.name(held), TENANT, lambda obj: obj["metadata"].update(finalizers=["a/b"])
    )
    assert "can be removed" in str(await hostility.end())


async def test_a_change_of_what_nobody_gave_away_is_told(clusters):
    hostility = await act(clusters, 1)
    clusters.servers["c3"].change(
        kinds.CONFIG_MAPS, "bystander", BYSTANDER, lambda obj: obj.update(data={})
    )
    assert [found.what for found in await hostility.end()] == ["ConfigMap bystander of c3"]
