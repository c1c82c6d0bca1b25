"""How many bytes the streams of a namespace carry."""

from __future__ import annotations

import asyncio

import pytest

from vnode.api.clock import Clock
from vnode.kubelet.streams.pace import ALTERNATING, BURST, RATE, Pace, StreamPaces

pytestmark = pytest.mark.looptime

CHUNK = 512 * 1024


async def carried(seconds: float, *streams: Pace) -> float:
    """Return how many bytes a second streams carry that are read as soon as they may be."""

    async def read(pace: Pace) -> None:
        nonlocal total
        while True:
            total += CHUNK
            await asyncio.sleep(max(pace(CHUNK), 1e-4))

    total = 0
    reading = [asyncio.create_task(read(each)) for each in streams]
    await asyncio.sleep(seconds)
    for task in reading:
        task.cancel()

    await asyncio.wait(reading)
    return total / seconds


async def test_one_stream_is_read_at_the_rate(clock: Clock) -> None:
    pace = StreamPaces(clock).of("busy")
    assert await carried(10, pace) == pytest.approx(RATE, rel=0.1)


async def test_streams_that_are_busy_at_once_share_a_part_of_it(clock: Clock) -> None:
    paces = StreamPaces(clock)
    streams = [paces.of("busy") for _ in range(10)]
    assert await carried(10, *streams) == pytest.approx(RATE / ALTERNATING, rel=0.2)


async def test_a_shell_beside_a_copy_costs_it_next_to_nothing(clock: Clock) -> None:
    paces = StreamPaces(clock)
    shell = paces.of("busy")

    async def type_on() -> None:
        while True:
            shell(100)
            await asyncio.sleep(0.2)

    typing = asyncio.create_task(type_on())
    assert await carried(10, paces.of("busy")) == pytest.approx(RATE, rel=0.1)
    typing.cancel()


async def test_another_namespace_does_not_wait(clock: Clock) -> None:
    paces = StreamPaces(clock)
    assert paces.of("busy")(10 * BURST) > 1
    assert paces.of("quiet")(CHUNK) == 0.0


async def test_nothing_is_known_of_streams_that_have_ended(clock: Clock) -> None:
    paces = StreamPaces(clock)
    assert paces.of("busy")(BURST) == 0.0
    assert paces.of("busy")(CHUNK) == pytest.approx(CHUNK / RATE)
