"""Others run while costly objects are taken, however many come at once."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import pytest

from tests import background, computing
from tests.apiserver.server import APIServer
from tests.computing import WorkingClock
from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.informer import Informer

pytestmark = pytest.mark.looptime

COST: Final = 0.002  # seconds for which a subscriber computes with each object
COUNT: Final = 100


def compute(_old: Object | None, _new: Object | None) -> None:
    end = time.thread_time() + COST
    while time.thread_time() < end:
        pass


@pytest.mark.parametrize("listed", [True, False])
async def test_others_run_while_costly_objects_are_taken(clock: Clock, *, listed: bool) -> None:
    server = APIServer("c1", clock)
    informer = Informer(server.client(), kinds.CONFIG_MAPS, clock=WorkingClock(clock))
    informer.subscribe(compute)

    def add() -> None:
        for number in range(COUNT):
            server.add(kinds.CONFIG_MAPS, {"metadata": {"name": f"c{number}", "namespace": "a"}})

    with computing.steps() as steps:
        if listed:
            add()

        async with background.running(informer.run()):
            await asyncio.sleep(1)
            if not listed:
                add()
                await asyncio.sleep(1)

    assert len(informer.store) == COUNT
    assert max(steps) < 25 * COST
