"""Sources of one namespace, however many, do not keep back those of another."""

from __future__ import annotations

import asyncio

import pytest

from tests import background
from tests.apiserver.server import APIServer
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.kube.informer import Informer
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
