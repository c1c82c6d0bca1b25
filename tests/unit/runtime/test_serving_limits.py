"""Ports that ask for no credentials: requests and answers take up neither the port nor memory."""

from __future__ import annotations

import asyncio
import gc
import gzip
import logging

import pytest
from aiohttp import web

from tests.unit.runtime.served_port import (
    GET,
    OK,
    POST,
    answer,
    ended,
    serve,
)
from vnode.runtime import serving
from vnode.runtime.connections import ConnectionLimits


async def test_an_answer_that_nobody_reads_is_not_kept() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 50_000_000)

    async with serve(page, limits=ConnectionLimits(total=60_000_000)) as port:
        first, second = await port.connect(GET), await port.connect()
        await first[0].readuntil(b"\r\n\r\n")
        second[1].write(GET)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await first[0].readexactly(50_000_000)


async def test_an_answer_that_is_read_too_slowly_ends() -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(body=b"x" * 50_000_000)

    async with serve(page, limits=ConnectionLimits(seconds=0.2, total=60_000_000)) as port:
        slow = await port.connect(GET)
        await slow[0].readuntil(b"\r\n\r\n")
        assert await ended(await port.connect(GET[:-3]))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await slow[0].readexactly(50_000_000)


async def test_a_large_body_is_refused_and_its_connection_closed() -> None:
    async with serve() as port:
        streamed = await port.connect(POST % 100_001 + b"x" * 100_001)
        assert (await answer(streamed)).startswith(b"HTTP/1.1 413")
        assert await ended(streamed)


async def test_a_compressed_body_is_not_unfolded() -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    head = POST.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n") % len(bomb)
    async with serve() as port:
        assert await port.ask(head + bomb) == OK + f" {len(bomb)}".encode()


@pytest.mark.parametrize(
    "more",
    [b"X: " + b"x" * 100_000 + b"\r\n", b"X: x\r\n" * 1000],
    ids=["long", "many"],
)
async def test_headers_of_any_port_are_bounded(more: bytes) -> None:
    async with serve() as port:
        assert (await port.ask(GET[:-2] + more + b"\r\n")).startswith(b"HTTP/1.0 400")


async def test_what_is_served_at_once_is_bounded_page_by_page(monkeypatch) -> None:
    monkeypatch.setattr(serving, "_AT_ONCE", 2)
    monkeypatch.setattr(serving, "_TURN", 0.1)
    go = asyncio.Event()

    async def held(_: web.Request) -> web.Response:
        await go.wait()
        return web.Response(text="done")

    async with serve(held) as port:
        slow = [await port.connect(POST % 5) for _ in range(4)]  # their bodies do not come
        running = [await port.connect(GET) for _ in range(2)]
        assert await port.ask(GET.replace(b"/ ", b"/other ")) == OK + b" 0"
        assert (await port.ask(GET)).startswith(b"HTTP/1.1 503")
        go.set()
        assert [await answer(each) for each in running] == [OK + b" done"] * 2
        slow[0][1].write(b"12345")
        assert await answer(slow[0]) == OK + b" done"


async def test_a_burst_waits_for_its_turn(monkeypatch) -> None:
    monkeypatch.setattr(serving, "_AT_ONCE", 1)
    go = asyncio.Event()

    async def held(_: web.Request) -> web.Response:
        await go.wait()
        return web.Response(text="done")

    async with serve(held) as port:
        burst = [await port.connect(GET) for _ in range(5)]
        assert await port.ask(GET.replace(b"/ ", b"/other ")) == OK + b" 0"
        go.set()
        assert [await answer(each) for each in burst] == [OK + b" done"] * 5


async def test_a_caller_that_goes_away_fills_no_log(caplog) -> None:
    caplog.set_level(logging.INFO)
    async with serve(limits=ConnectionLimits(seconds=1.0)) as port:
        assert await ended(await port.connect(POST % 10 + b"half"))
        (await port.connect(POST % 10 + b"half"))[1].transport.abort()
        assert await port.ask(GET) == OK + b" 0"

    assert not caplog.records


async def test_a_caller_that_sends_too_much_at_once_fills_no_log(caplog) -> None:
    async with serve(limits=ConnectionLimits(each=100)) as port:
        assert await ended(await port.connect(POST % 1000 + b"x" * 1000))
        assert await port.ask(GET) == OK + b" 0"

    gc.collect()
    assert not caplog.records
