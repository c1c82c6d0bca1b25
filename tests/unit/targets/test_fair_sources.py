"""Sources of one namespace, however many, do not keep back those of another."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.kube.informer import Informer
from vnode.runtime import write_limits
from vnode.targets.sources import SourceController

pytestmark = pytest.mark.looptime


async def test_a_namespace_of_many_sources_does_not_keep_back_that_of_another(clock: Clock) -> None:
    server = APIServer("c2", clock, latency=lambda: 0.05)
    for namespace, count in (("many", 200), ("one", 1)):
        server.add(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        for number in range(count):
            metadata = {"namespace": namespace, "name": f"s{number}"}
            server.add(kinds.SOURCES, {"metadata": metadata, "spec": {"userName": "us"}})

    namespaces = Informer(server.client(), kinds.NAMESPACES)
    controller = SourceController(server.client(), namespaces, "vnode", clock=clock)
    async with background.running(namespaces.run(), controller.run()):
        await asyncio.sleep(3)
        assert objects.condition(server.find(kinds.SOURCES, "s0", "one") or {}, "Ready")
        assert not objects.condition(server.find(kinds.SOURCES, "s199", "many") or {}, "Ready")


async def test_a_source_that_changes_all_the_time_is_looked_at_at_a_rate(clock: Clock) -> None:
    server = APIServer("c2", clock)
    metadata = {"namespace": "many", "name": "s"}
    server.add(kinds.NAMESPACES, {"metadata": {"name": "many"}})
    server.add(kinds.SOURCES, {"metadata": metadata, "spec": {"userName": "us-0"}})
    namespaces = Informer(server.client(), kinds.NAMESPACES)
    controller = SourceController(server.client(), namespaces, "vnode", clock=clock)
    async with background.running(namespaces.run(), controller.run()):
        for number in range(1, 301):
            spec = {"spec": {"userName": f"us-{number}"}}
            await server.client().patch(kinds.SOURCES, "s", spec, "many")
            await asyncio.sleep(0.1)

        limit = write_limits.SOURCE_CHANGES
        written = server.count("create", kinds.ROLE_BINDINGS) + server.count(
            "patch", kinds.ROLE_BINDINGS
        )
        assert written <= 3 * (limit.burst + 30 * limit.rate)
        await asyncio.sleep(2 / limit.rate)
        subjects = [each["subjects"] for each in server.all(kinds.ROLE_BINDINGS)]
        assert subjects
        assert all(each[0]["name"] == "us-300" for each in subjects)


async def test_an_account_wakes_the_sources_that_name_it_and_default_those_that_wait(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = APIServer("c2", clock)
    server.add(kinds.NAMESPACES, {"metadata": {"name": "team"}})
    for name in ("one", "other", "late"):
        namespace = "new" if name == "late" else "team"
        spec = {"serviceAccount": {"namespace": namespace, "name": name}}
        server.add(kinds.CLUSTER_SOURCES, {"metadata": {"name": name}, "spec": spec})

    namespaces = Informer(server.client(), kinds.NAMESPACES)
    controller = SourceController(server.client(), namespaces, "vnode", clock=clock)
    async with background.running(namespaces.run(), controller.run()):
        await asyncio.sleep(3)
        woken = list[str]()
        monkeypatch.setattr(controller._controller, "add", woken.append)
        for namespace, name in (("team", "app"), ("team", "default"), ("new", "default")):
            metadata = {"namespace": namespace, "name": name}
            server.add(kinds.SERVICE_ACCOUNTS, {"metadata": metadata})

        await server.client().delete(kinds.SERVICE_ACCOUNTS, "one", "team")
        await asyncio.sleep(1)
        assert woken == ["late", "one"]
