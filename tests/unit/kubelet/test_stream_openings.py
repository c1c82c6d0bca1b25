"""Who opens logs and streams all the time waits, and nobody else."""

from __future__ import annotations

import asyncio

import pytest

from vnode.api.clock import Clock
from vnode.kubelet.refusal import Refused
from vnode.kubelet.stream_openings import BURST, LONGEST, RATE, StreamOpenings

pytestmark = pytest.mark.looptime


async def opened(openings: StreamOpenings, namespace: str, count: int) -> list[float]:
    """Open so many at once; return when each was."""
    loop = asyncio.get_running_loop()
    begun, times = loop.time(), list[float]()

    async def one() -> None:
        await openings.wait(namespace)
        times.append(loop.time() - begun)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())

    return times


async def test_a_burst_is_opened_at_once_and_what_is_beyond_by_and_by(clock: Clock) -> None:
    openings = StreamOpenings(clock)
    times = await opened(openings, "many", BURST + 40)
    assert sum(time == 0 for time in times) == BURST
    assert max(times) == pytest.approx(40 / RATE, abs=0.1)


async def test_a_long_query_counts_for_more_than_one(clock: Clock) -> None:
    openings, begun = StreamOpenings(clock), asyncio.get_running_loop().time()
    await openings.wait("many", 2 * 1024 * 1024)
    waited = asyncio.get_running_loop().time() - begun
    assert waited == pytest.approx((33 - BURST) / RATE, abs=0.1)


async def test_another_namespace_does_not_wait(clock: Clock) -> None:
    openings = StreamOpenings(clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(opened(openings, "many", 2 * BURST))
        await asyncio.sleep(0.5)
        assert await opened(openings, "one", 5) == [0] * 5


async def test_what_would_wait_for_long_is_refused(clock: Clock) -> None:
    openings, waiting = StreamOpenings(clock), int(LONGEST * RATE)
    async with asyncio.TaskGroup() as group:
        group.create_task(opened(openings, "many", BURST + waiting))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="too many logs and streams of namespace many"):
            await openings.wait("many")
