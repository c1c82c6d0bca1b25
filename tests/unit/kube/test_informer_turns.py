"""Others run while costly objects are taken, however many come at once."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from typing import Final

import pytest

from tests import background, computing
from tests.apiserver.server import APIServer
from tests.computing import BusyClock, WorkingClock
from vnode.api import kinds, objects
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


async def test_others_run_while_many_objects_go(clock: Clock) -> None:
    """A target may list thousands, and then none."""
    informer = Informer(APIServer("c1", clock).client(), kinds.CONFIG_MAPS, clock=BusyClock())
    items = [{"metadata": {"name": f"c{n}", "namespace": "a", "uid": f"{n}"}} for n in range(COUNT)]
    await informer.replace(items, None)
    left = []

    async def look() -> None:
        while informer.store:
            left.append(len(informer.store))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        group.create_task(informer.replace([], None))

    assert max(a - b for a, b in pairwise([*left, 0])) < COUNT / 10


async def test_a_list_that_is_not_taken_whole_is_taken_up_by_the_next_one(clock: Clock) -> None:
    informer = Informer(APIServer("c1", clock).client(), kinds.CONFIG_MAPS, clock=BusyClock())
    items = [
        {"metadata": {"name": f"c{n}", "namespace": "a", "uid": f"{n}", "resourceVersion": "1"}}
        for n in range(COUNT)
    ]
    await informer.replace(items, None)
    gone = list[str]()

    def note(old: Object | None, new: Object | None) -> None:
        if new is None:
            gone.append(objects.name(old or {}))
            if len(gone) == COUNT / 2:
                task.cancel()

    informer.subscribe(note)
    task = asyncio.create_task(informer.replace(items[:1], None))
    await asyncio.wait([task])
    assert task.cancelled()
    assert 1 < len(informer.store) < COUNT
    await informer.replace(items[:1], None)
    assert list(informer.store) == ["a/c0"]
    assert sorted(gone) == sorted(f"c{n}" for n in range(1, COUNT))
