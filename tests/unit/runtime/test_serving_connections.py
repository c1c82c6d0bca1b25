"""Which connections to a port end, where whoever reaches it may open as many as they like."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import pytest
from aiohttp import web

from tests.unit.runtime.served_port import (
    GET,
    OK,
    POST,
    answer,
    ended,
    running,
    serve,
    size,
)
from vnode.runtime.connections import ConnectionLimits, UnauthenticatedConnections
from vnode.runtime.listening import IN_A_PASS, ListeningSocket, listen
from vnode.runtime.serving import Handler, Server


@pytest.mark.parametrize(
    "sent", [GET[:-3], POST % 10 + b"half"], ids=["half a head", "half a body"]
)
async def test_a_request_that_does_not_come_ends_the_connection(sent: bytes) -> None:
    async with serve(limits=ConnectionLimits(seconds=0.1, idle=60)) as port:
        assert await ended(await port.connect(sent))


async def test_a_connection_that_an_api_server_opened_to_have_one_stays() -> None:
    """It would be ended in the moment in which a request is sent on it."""
    async with serve(limits=ConnectionLimits(seconds=1.5, idle=60)) as port:
        spare = await port.connect()
        assert await ended(await port.connect(GET[:-3]))  # longer than a request may take
        spare[1].write(GET)
        assert await answer(spare) == OK + b" 0"


async def test_a_connection_on_which_nothing_comes_ends() -> None:
    async with serve(limits=ConnectionLimits(seconds=60, idle=0.1)) as port:
        assert await ended(await port.connect())


async def test_a_slow_drip_ends() -> None:
    async with serve(limits=ConnectionLimits(seconds=0.3)) as port:
        reader, writer = await port.connect(POST % 1000)

        async def drip() -> None:
            while not reader.at_eof():
                writer.write(b"x")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert await ended((reader, writer))
        dripping.cancel()


async def test_a_connection_stays_between_requests_and_ends_in_the_midst_of_one() -> None:
    async with serve(limits=ConnectionLimits(seconds=1.5, idle=60)) as port:
        kept = await port.connect(GET)
        assert await answer(kept) == OK + b" 0"
        assert await ended(await port.connect(GET[:-3]))  # longer than a request may take
        kept[1].write(GET)
        assert await answer(kept) == OK + b" 0"
        kept[1].write(GET[:-2])
        assert await ended(kept)


async def test_an_idle_connection_ends() -> None:
    async with serve(limits=ConnectionLimits(seconds=60, idle=0.1)) as port:
        kept = await port.connect(GET)
        assert await answer(kept) == OK + b" 0"
        assert await ended(kept)


async def test_of_too_many_connections_the_oldest_ends_and_a_request_gets_through() -> None:
    async with serve(limits=ConnectionLimits(connections=3)) as port:
        first, *_others = [await port.connect() for _ in range(4)]
        assert await ended(first)
        assert await port.ask(GET) == OK + b" 0"


async def test_a_flood_of_connections_ends_none_that_was_served() -> None:
    async with serve(limits=ConnectionLimits(connections=3)) as port:
        kept = await port.connect(GET)
        assert await answer(kept) == OK + b" 0"
        silent = [await port.connect() for _ in range(9)]
        for each in silent[:6]:
            assert await ended(each)

        kept[1].write(GET)
        assert await answer(kept) == OK + b" 0"


async def test_of_too_many_that_were_served_the_longest_idle_ends() -> None:
    async with serve(limits=ConnectionLimits(connections=2)) as port:
        kept = [await port.connect(GET) for _ in range(2)]
        assert [await answer(each) for each in kept] == [OK + b" 0"] * 2
        kept[0][1].write(GET)
        assert await answer(kept[0]) == OK + b" 0"
        assert await port.ask(GET) == OK + b" 0"
        assert await ended(kept[1])


async def test_the_connection_that_holds_most_ends_when_all_hold_too_much() -> None:
    async with serve(limits=ConnectionLimits(total=60_000)) as port:
        small = await port.connect(POST % 10)
        large = await port.connect(POST % 70_000 + b"x" * 69_999)
        assert await ended(large)
        small[1].write(b"x" * 10)
        assert await answer(small) == OK + b" 10"


async def test_requests_on_one_connection_do_not_add_up() -> None:
    async with serve(limits=ConnectionLimits(each=10_000, total=10_000)) as port:
        kept = await port.connect()
        for _ in range(5):
            kept[1].write(POST % 9000 + b"x" * 9000)
            assert await answer(kept) == OK + b" 9000"


async def test_of_a_server_that_authenticates_only_known_connections_stay() -> None:
    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if "Authorization" not in request.headers:
            raise web.HTTPUnauthorized(text="")

        return await handler(request)

    app = web.Application(middlewares=[check])
    app.add_routes([web.get("/", size)])
    limits = ConnectionLimits(seconds=2.0)
    server = Server("test", app, "127.0.0.1", 0, limits=limits, authenticates=True)
    token = GET[:-2] + b"Authorization: Bearer x\r\n\r\n"
    async with running(server) as port:
        known, refused = await port.connect(token), await port.connect(GET)
        lost = await port.connect(token.replace(b"/ ", b"/no ", 1))
        assert await answer(known) == OK + b" 0"
        assert (await answer(refused)).startswith(b"HTTP/1.1 401")
        assert (await answer(lost)).startswith(b"HTTP/1.1 404")
        assert await ended(refused)
        assert await ended(lost)
        known[1].write(token)
        assert await answer(known) == OK + b" 0"


async def test_of_connections_that_come_at_once_few_are_accepted_in_one_pass_of_the_loop() -> None:
    """Each handshake takes a millisecond: of forty, callers that are known would notice."""
    connections = UnauthenticatedConnections(ConnectionLimits())
    listening = ListeningSocket(listen("127.0.0.1", 0, 100), connections)
    callers = [socket.create_connection(listening.getsockname()) for _ in range(5)]
    accepted: list[socket.socket] = []
    try:
        for passes in range(1, 4):
            with suppress(BlockingIOError):
                while True:
                    accepted.append(listening.accept()[0])

            assert len(accepted) == min(len(callers), passes * IN_A_PASS)
            await asyncio.sleep(0)
    finally:
        for each in (listening, *callers, *accepted):
            each.close()
