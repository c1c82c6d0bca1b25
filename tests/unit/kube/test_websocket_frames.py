"""WebSockets whose other side sends frames that carry nothing: both sides end them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from aiohttp import web
from aiohttp.http_websocket import WS_KEY
from aiohttp.test_utils import TestServer

from tests.unit.kube.raw_server import served_by
from vnode.kube import websockets
from vnode.kube.served_websockets import CountedWebSocket
from vnode.kube.websocket_frames import EMPTY_FRAMES, FrameCounter, FrameLimit

ALL = FrameLimit(per_second=10, at_once=100, counts_messages=True)
PING, PONG, PART, END = b"\x89\x00", b"\x8a\x00", b"\x00\x00", b"\x80\x00"
TEXT, EMPTY, SHORT = b"\x81\x02ab", b"\x82\x00", b"\x82\x01\x01"
MASKED = b"\x81\x82\x01\x02\x03\x04ab"
LONG = b"\x82\x7e\x10\x00" + b"x" * 4096
LARGE = b"\x82\x7f" + (1 << 17).to_bytes(8, "big") + b"x" * (1 << 17)
SOME_PART = b"\x00\x7e\x10\x00" + b"x" * 4096
FLOODS = pytest.mark.parametrize(
    "flood",
    [
        pytest.param((b"", PING), id="pings"),
        pytest.param((b"", PONG), id="pongs"),
        pytest.param((b"\x01\x00", PART), id="empty-fragments"),
        pytest.param((b"\x01\x00", b"\x00\x01x"), id="fragments-of-one-byte"),
        pytest.param((b"", EMPTY), id="empty-messages"),
        pytest.param((b"", SHORT), id="messages-of-one-byte"),
    ],
)


@pytest.mark.parametrize(
    ("data", "empty", "all_of_them"),
    [
        (PING + PONG, 2, 2),
        (PART + END, 2, 2),
        (EMPTY + SHORT, 2, 2),
        (TEXT * 5 + MASKED * 5, 0, 10),
        (LONG, 0, 2),
        (LARGE, 0, 33),
        (SOME_PART, 0, 2),
    ],
)
@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1 << 20])
def test_frames_are_counted_however_their_bytes_come(data, empty, all_of_them, cut):
    whole = data + PING
    for limit, expected in ((EMPTY_FRAMES, empty + 1), (ALL, all_of_them + 1)):
        counter = FrameCounter(limit)
        pieces = [whole[at : at + cut] for at in range(0, len(whole), cut)]
        assert sum(counter.cost(piece, 1000) for piece in pieces) == expected


def test_no_more_are_counted_than_may_come():
    assert FrameCounter(EMPTY_FRAMES).cost(PONG * 100_000, 100) == 101


@asynccontextmanager
async def flooding(flood):
    """Yield a client of a server whose WebSockets never end."""
    first, again = flood

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        key = next(
            line.partition(b":")[2].strip()
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"sec-websocket-key")
        )
        accept = base64.b64encode(hashlib.sha1(key + WS_KEY, usedforsecurity=False).digest())
        writer.write(
            b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n" + first
        )
        with suppress(ConnectionError):
            while True:
                writer.write(again * 20_000)
                await writer.drain()
                await asyncio.sleep(0)

        writer.close()

    async with served_by(serve, "c2") as client:
        yield client


@FLOODS
async def test_a_server_that_sends_them_without_end_is_broken_off(flood):
    async with (
        asyncio.timeout(20),
        flooding(flood) as client,
        websockets.connect(client, "/x", (), "p") as socket,
    ):
        received = [message.type async for message in socket]

    assert len(received) <= EMPTY_FRAMES.at_once


@pytest.mark.parametrize("is_early", [True, False], ids=["before-the-answer", "after-it"])
@FLOODS
async def test_so_is_a_client(flood, is_early):
    first, again = (unmasked_to_masked(frame) for frame in flood)
    received, has_begun = 0, False
    ended = asyncio.Event()

    async def answer(request):
        nonlocal received, has_begun
        socket = CountedWebSocket(EMPTY_FRAMES, heartbeat=10)
        await socket.prepare(request)
        has_begun = True
        async for _message in socket:
            received += 1

        ended.set()
        return socket

    app = web.Application()
    app.router.add_get("/", answer)
    async with asyncio.timeout(20), TestServer(app) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = (
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + base64.b64encode(b"x" * 16)
        )
        writer.write(head + b"\r\n\r\n" + (first + again * 1000 if is_early else b""))
        if not is_early:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(first)

        with suppress(ConnectionError):
            while not ended.is_set():
                writer.write(again * 1000)
                await writer.drain()
                await asyncio.sleep(0)

        await ended.wait()
        writer.close()
        assert has_begun
        assert received <= EMPTY_FRAMES.at_once


def unmasked_to_masked(frame):
    """Return a frame as clients send it, by the mask that changes nothing."""
    return frame and frame[:1] + bytes([frame[1] | 0x80]) + bytes(4) + frame[2:]


async def test_honest_sides_notice_nothing_of_it():
    async def answer(request):
        socket = CountedWebSocket(
            FrameLimit(per_second=200, at_once=2000, counts_messages=True), heartbeat=0.05
        )
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(message.data)

        return socket

    app = web.Application()
    app.router.add_get("/", answer)
    async with (
        asyncio.timeout(20),
        TestServer(app) as server,
        aiohttp.ClientSession() as session,
        session.ws_connect(server.make_url("/"), heartbeat=0.05) as socket,
    ):
        for number in range(300):
            await socket.send_str(f"message {number}")
            assert await socket.receive_str() == f"message {number}"


async def test_a_message_that_is_too_large_ends_the_stream():
    large = b"\x81\x7f" + (2**22).to_bytes(8, "big") + b"x" * 2**22
    async with (
        asyncio.timeout(20),
        flooding((large, b"")) as client,
        websockets.connect(client, "/x", (), "p", largest=2**17) as socket,
    ):
        assert (await socket.receive()).type is aiohttp.WSMsgType.ERROR
