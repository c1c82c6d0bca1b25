"""How many bytes the streams of a namespace carry."""

from __future__ import annotations

import asyncio

import pytest

from vnode.api.clock import Clock
from vnode.kubelet.streams.pace import BURST, RATE, StreamPaces

pytestmark = pytest.mark.looptime

CHUNK = 128 * 1024


async def test_streams_of_a_namespace_share_a_rate_beyond_a_burst(clock: Clock) -> None:
    paces = StreamPaces(clock)
    one, another = paces.of("busy"), paces.of("busy")
    for _ in range(BURST // CHUNK // 2):
        assert one(CHUNK) == another(CHUNK) == 0.0

    sent = 0
    for _ in range(50):
        await asyncio.sleep(max(one(CHUNK), another(CHUNK)))
        sent += 2 * CHUNK

    assert sent / RATE == pytest.approx(clock.monotonic(), rel=0.1)


async def test_another_namespace_does_not_wait(clock: Clock) -> None:
    paces = StreamPaces(clock)
    assert paces.of("busy")(10 * BURST) > 1
    assert paces.of("quiet")(CHUNK) == 0.0
