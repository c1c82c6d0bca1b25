"""A namespace with thousands of Targets makes no step longer, and costs pods of others nothing."""

from __future__ import annotations

import asyncio

import pytest

from tests import background, computing
from tests.apiserver.links import following
from tests.apiserver.server import APIServer
from tests.unit.scheduling import costs
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.nodes import controller
from vnode.nodes.controller import NodeController
from vnode.runtime.links import Links
from vnode.targets.target_lister import TargetLister

pytestmark = pytest.mark.looptime

COUNT = 3000
FITTING = 20


def add(server: APIServer, name: str, created: int = 0) -> None:
    at = f"2026-01-01T00:00:{created:02d}Z"
    metadata = {"name": name, "namespace": "team", "creationTimestamp": at}
    server.add(kinds.TARGETS, {"metadata": metadata, "spec": {}})


async def test_a_target_that_comes_or_goes_has_no_others_looked_at(clock: Clock) -> None:
    server = APIServer("c1", clock)
    for number in range(COUNT):
        add(server, f"t{number:04d}")

    client = server.client()
    lister, nodes = TargetLister(client, limit=FITTING), controller.informer(client)
    async with following(*lister.informers, nodes):
        kept = NodeController(
            *(client, nodes, Links(), lister),
            advertise_address="10.0.0.1",
            port_of=lambda _name: 10251,
            clock=computing.WorkingClock(clock),
        )
        with computing.steps() as steps:
            async with background.running(kept.run()):
                await asyncio.sleep(1)
                assert max(steps) < 0.05
                assert len(server.all(kinds.NODES)) == FITTING
                steps.clear()
                add(server, "later", 1)
                await asyncio.sleep(1)
                assert sum(steps) < 0.02
                server.remove(kinds.TARGETS, "t0000", "team")
                await asyncio.sleep(1)

        present = {objects.name(node) for node in server.all(kinds.NODES)}
        assert f"admiralty-team-t{FITTING:04d}" in present  # the next one fits now
        assert len(present) == FITTING
        assert costs.bytecodes(lambda: lister.finalizers("other")) < 1000
