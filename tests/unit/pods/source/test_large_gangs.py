"""A gang of thousands of pods is promised its room in slices, and nobody decides by half of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests import computing
from tests.unit.gangs.pods import member, table
from tests.unit.scheduling.builders import cache_of
from tests.unit.scheduling.gpu_targets import make_framework
from vnode.api.clock import SystemClock
from vnode.gangs.gang import Gang
from vnode.pods.source.gang_choice import GangChooser
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.node_rows import NodeRows
from vnode.scheduling.queue import SchedulingQueue

ROOM = {"cpu": 10**8, "pods": 10**5}
SPEC = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1m"}}}]}


class LargeGang:
    """A gang that is tried on node `a`, of which no other pod knows."""

    def __init__(self, pods: int = 1_000) -> None:
        self.gangs = table(*(member(f"p{n}", pods, spec=SPEC) for n in range(pods)))
        self.last = f"p{pods - 1}"
        self.cache, clock = cache_of("a"), SystemClock()
        nodes = NodeRows([ROOM] * 16, is_complete=True)
        self.cache.update_free("a", ROOM, ROOM, nodes)
        framework = make_framework(gangs=self.gangs)
        queue = SchedulingQueue(clock, framework.queue_sort.sort_key, framework.registrations())
        self.assumptions = Assumptions(framework, self.cache, queue, clock)
        unused: Any = None
        self.chooser = GangChooser(self.gangs, unused, self.assumptions, queue, unused, clock)

    @property
    def gang(self) -> Gang:
        [gang] = self.gangs.values()
        return gang

    def begin(self) -> None:
        self.chooser._try(self.gang, "a", "p0", grows=False)

    def counted(self) -> int:
        return sum(self.cache.has(uid, "a") for uid in list(self.gang.members))


async def test_promises_to_thousands_of_pods_hold_nobody_up() -> None:
    """They took 330 ms in one step."""
    large, halves = LargeGang(5_000), 0
    with computing.steps() as took:
        large.begin()
        waiting = [asyncio.create_task(large.assumptions.whole()) for _ in range(100)]
        while not all(task.done() for task in waiting):
            await asyncio.sleep(0)
            halves += large.cache.has("p0", "a") and not large.cache.has(large.last, "a")

    assert max(took) < 0.05
    assert halves > 3
    assert large.counted() == len(large.gang.members)


@pytest.mark.parametrize("reads", ["snapshot", "promised", "ending"])
async def test_who_reads_meanwhile_reads_all_of_it(reads: str) -> None:
    large = LargeGang()
    large.begin()
    waiting = asyncio.create_task(large.assumptions.whole())
    await asyncio.sleep(0)
    assert 0 < large.counted() < len(large.gang.members)
    read: Any = getattr(large.cache, reads)
    read("a") if reads == "promised" else read()
    assert large.counted() == len(large.gang.members)
    await waiting


async def test_a_gang_that_has_left_meanwhile_is_promised_no_more() -> None:
    large = LargeGang()
    large.begin()
    waiting = asyncio.create_task(large.assumptions.whole())
    await asyncio.sleep(0)
    promised = large.counted()
    large.gang.leave()
    await waiting
    assert large.counted() == promised < len(large.gang.members)


async def test_a_pod_that_is_gone_meanwhile_is_promised_nothing() -> None:
    large = LargeGang()
    large.begin()
    waiting = asyncio.create_task(large.assumptions.whole())
    await asyncio.sleep(0)
    last = large.gang.members[large.last].pod
    large.gangs.on_pod(last, None)
    await waiting
    assert not large.cache.has(large.last, "a")
    assert large.cache.has("p0", "a")
