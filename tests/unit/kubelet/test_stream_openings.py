"""Who opens logs and streams all the time waits, and nobody else."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import aiohttp
import pytest
from aiohttp import web

from tests.virtual_nodes import node
from vnode.api.clock import Clock
from vnode.kubelet import stream_openings
from vnode.kubelet.refusal import Refused
from vnode.kubelet.stream_openings import (
    BUFFER,
    BURST,
    LARGE,
    LONGEST,
    MOST_OPEN,
    RATE,
    SMALL_BUFFER,
    StreamOpenings,
)

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


def test_the_more_a_namespace_has_open_the_less_each_may_hold(clock: Clock) -> None:
    openings = StreamOpenings(clock)
    with ExitStack() as stack:
        held = [stack.enter_context(openings.counted("many")) for _ in range(MOST_OPEN)]
        assert sum(held) == LARGE * BUFFER + (MOST_OPEN - LARGE) * SMALL_BUFFER < 50_000_000
        with pytest.raises(Refused, match="logs and streams of namespace many are open"):
            stack.enter_context(openings.counted("many"))

        assert stack.enter_context(openings.counted("one")) == BUFFER

    with openings.counted("many") as size:
        assert size == BUFFER

    assert not openings._open


async def test_logs_that_nobody_reads_are_counted_until_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream_openings, "MOST_OPEN", 1)

    async def follows(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"a line\n")
        await asyncio.sleep(3600)
        return response

    async with node(follows) as at, aiohttp.ClientSession(at.make_url("/")) as session:
        path = "/containerLogs/default/web/main?follow=true"
        async with session.get(path) as first, session.get(path) as second:
            assert (first.status, second.status) == (200, 429)
            first.close()

        await asyncio.sleep(0.5)
        async with session.get(path) as again:
            assert again.status == 200
            again.close()
