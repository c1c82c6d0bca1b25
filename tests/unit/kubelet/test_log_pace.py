"""How fast logs are read, whatever their containers print and their targets send."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.unit.kubelet.test_hostile_targets import ask
from tests.virtual_nodes import node
from vnode.kubelet.streams import pace

PATH = "containerLogs/default/web/main"
MIB = 1024 * 1024


async def endless(request: web.Request) -> web.StreamResponse:
    """Answer with a log that does not end."""
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(b"y\n" * 8192)

    return response


@asynccontextmanager
async def reading(at: TestServer) -> AsyncIterator[aiohttp.StreamReader]:
    """Yield a log that is read."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{at.make_url('/')}{PATH}?follow=true") as answer,
    ):
        yield answer.content


async def drain(log: aiohttp.StreamReader) -> None:
    """Read a log for as long as it comes."""
    async for _chunk in log.iter_any():
        pass


async def test_logs_of_a_namespace_share_the_pace_of_its_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What they may have at once is read, and then nothing until more has been earned."""
    monkeypatch.setattr(pace, "BURST", 8 * MIB)
    monkeypatch.setattr(pace, "RATE", 1.0)
    carried, most = 0, 0.0
    charge = pace.StreamPaces.charge
    waits = asyncio.Event()

    def note(paces: pace.StreamPaces, stream: pace._StreamPace, size: int) -> float:
        nonlocal carried, most
        carried += size
        most = max(most, size)
        wait = charge(paces, stream, size)
        if wait:
            waiting.add(id(stream))
            if len(waiting) == 3:
                waits.set()

        return wait

    waiting: set[int] = set()
    monkeypatch.setattr(pace.StreamPaces, "charge", note)
    async with (
        asyncio.timeout(60),
        node(endless) as at,
        reading(at) as one,
        reading(at) as two,
        reading(at) as three,
        asyncio.TaskGroup() as group,
    ):
        tasks = [group.create_task(drain(log)) for log in (one, two, three)]
        await waits.wait()  # all of them are paused, for hours
        for task in tasks:
            task.cancel()

    assert 2 * MIB <= carried <= 8 * MIB + 3 * most


async def test_a_log_that_comes_whole_lets_others_have_their_turn() -> None:
    """Each chunk is there before the one before it was passed on."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def chunks() -> AsyncIterator[int]:
        for _number in range(100):
            await pace.go_on(0.0)
            yield turns

    counting = asyncio.create_task(count())
    seen = [turn async for turn in chunks()]
    counting.cancel()
    assert len(set(seen)) == 100


async def test_a_log_is_not_unfolded() -> None:
    """A megabyte that is asked for as it is must not become a gigabyte here."""
    asked = []

    async def folded(request: web.Request) -> web.Response:
        asked.append(request.headers["Accept-Encoding"])
        body = gzip.compress(b"y\n" * MIB)
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    async with node(folded) as at:
        status, text = await ask(at, "GET", PATH, {})

    assert (status, asked) == (500, ["identity"])
    assert "compressed" in text


async def test_one_that_says_it_is_as_it_is_comes() -> None:
    async def plain(_request: web.Request) -> web.Response:
        headers = {"Content-Encoding": "identity", "Content-Type": "text/plain"}
        return web.Response(body=b"hello", headers=headers)

    async with node(plain) as at:
        assert await ask(at, "GET", PATH, {}) == (200, "hello")
