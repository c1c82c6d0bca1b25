"""Whatever a server sends before, in or after the head of its answer costs next to nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress

import pytest

from tests.unit.kube.raw_server import served_by
from vnode.api import kinds
from vnode.api.errors import Unreachable
from vnode.kube import answer_heads, watching, websockets
from vnode.kube.client import Client
from vnode.kube.watching import ListOptions

BODY = b'{"metadata": {"name": "x"}}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 27\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
MANY = 100_000


@asynccontextmanager
async def sending(answer: bytes) -> AsyncIterator[Client]:
    """Yield a client of a server that sends those bytes for each request, and stays."""
    sent = asyncio.Event()

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()

        sent.set()
        writer.close()

    async with served_by(send, "hostile") as client:
        yield client

    await sent.wait()


async def get(client: Client) -> object:
    return await client.get(kinds.PODS, "x", "default")


async def stream(client: Client) -> object:
    async with client.stream("GET", "/log", query={}, silence=5) as answer:
        return await answer.read()


async def upgrade(client: Client) -> object:
    async with websockets.connect(client, "/exec", [], "v4.channel.k8s.io"):
        return None


WAYS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "get": get,
    "stream": stream,
    "upgrade": upgrade,
}
FLOODS = {
    "early hints": (EARLY * MANY, r"more than 8 informational answers \(1xx\)"),
    "large hints": (
        (EARLY[:-2] + b"Link: %s\r\n\r\n" % (b"x" * 8000)) * 1000,
        r"more than 8 informational answers|has more than 65536 bytes",
    ),
    "continue": (CONTINUE * MANY, "more than 8 informational"),
    "headers": (
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * MANY,
        "is not HTTP|has more than 65536 bytes",
    ),
    "one header": (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 5_000_000, "is not HTTP|65536 bytes"),
    "reason": (b"HTTP/1.1 200 " + b"b" * 5_000_000, "is not HTTP|65536 bytes"),
    "answers": ((HEAD + BODY) * MANY, "sent more than one answer"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("flood", FLOODS)
async def test_a_head_out_of_bounds_fails_the_request_and_costs_next_to_nothing(
    way: str, flood: str
) -> None:
    sent, why = FLOODS[flood]
    if flood == "answers" and way == "upgrade":
        why = "Invalid response status"  # no answer to an upgrade

    async with sending(sent) as client:
        started = time.process_time()
        with suppress(Unreachable) if flood == "answers" else pytest.raises(Unreachable, match=why):
            await WAYS[way](client)

        cost = time.process_time() - started

    async with sending(HEAD + BODY) as client:
        await get(client)
        started = time.process_time()
        for _ in range(20):
            await get(client)

        usual = time.process_time() - started

    assert cost < 50 * usual, "less than 1,000 small answers"


async def test_an_honest_server_may_say_that_it_goes_on() -> None:
    async with sending(CONTINUE * answer_heads.MOST_INFORMATIONAL + HEAD + BODY) as client:
        for _ in range(3):  # by one connection
            assert await get(client) == {"metadata": {"name": "x"}}


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def in_chunks(body: bytes, size: int) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return CHUNKED + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


async def test_a_body_in_chunks_of_one_byte_fails_the_request() -> None:
    body = b'{"metadata": {"name": "%s"}}' % (b"x" * 500_000)
    async with sending(in_chunks(body, 1)) as client:
        with pytest.raises(Unreachable, match="in chunks of next to nothing"):
            await get(client)


async def watch(client: Client) -> None:
    async with aclosing(watching.stream(client, ListOptions(kinds.PODS), "1")) as events:
        async for _ in events:
            pass


@pytest.mark.parametrize(
    ("body", "size", "why"),
    [
        (b'{"type": "ADDED"' + b" " * 200_000, 1, "in chunks of next to nothing"),
        (b"\n" * 200_000, 10_000, "sent empty lines"),
    ],
)
async def test_a_watch_that_says_nothing_at_length_breaks(body: bytes, size: int, why: str) -> None:
    async with sending(in_chunks(body, size)) as client:
        with pytest.raises(Unreachable, match=why):
            await watch(client)


@pytest.mark.parametrize("ask", [get, watch], ids=["get", "watch"])
@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(gzip.compress(b""), id="members"),
        pytest.param(b"\x00\x00\x00\xff\xff", id="blocks"),
    ],
)
async def test_a_body_that_unfolds_to_nothing_breaks(
    ask: Callable[[Client], Awaitable[object]], piece: bytes
) -> None:
    """Nobody hears of it who could end it: 8 MB took 1.5 s of CPU."""
    opening = zlib.compressobj(wbits=31)
    body = opening.compress(b"x") + opening.flush(zlib.Z_FULL_FLUSH)
    body = piece if piece[:1] == b"\x1f" else body
    head = CHUNKED.replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1)
    answer = in_chunks(body + piece * (2_000_000 // len(piece)), 60_000)
    async with sending(answer.replace(CHUNKED, head, 1)) as client:
        with pytest.raises(Unreachable, match="mostly what frames it"):
            await ask(client)


@pytest.mark.parametrize("size", [100, 1000, 100_000])
async def test_bodies_in_chunks_of_usual_sizes_are_read_as_ever(size: int) -> None:
    body = b'{"metadata": {"name": "%s"}}' % (b"x" * 2_000_000)
    async with sending(in_chunks(body, size)) as client:
        assert await get(client) == {"metadata": {"name": "x" * 2_000_000}}


async def test_a_body_that_is_compressed_well_or_not_at_all_is_read_as_ever() -> None:
    for text in ("x" * 5_000_000, random.Random(7).randbytes(1_500_000).hex()):
        body = gzip.compress(json.dumps({"metadata": {"name": text}}).encode())
        head = CHUNKED.replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1)
        async with sending(in_chunks(body, 8192).replace(CHUNKED, head, 1)) as client:
            assert await get(client) == {"metadata": {"name": text}}


@pytest.mark.parametrize("size", [0, 1, 5_000, 300_000])
async def test_bodies_of_any_size_are_read_as_ever(size: int) -> None:
    body = b'{"metadata": {"name": "%s"}}' % (b"x" * size)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with sending(head + body) as client:
        for _ in range(2):
            assert await get(client) == {"metadata": {"name": "x" * size}}
