"""Unauthenticated connections cannot use up a port of the kubelet API, nor keep others out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests import certificates
from tests.certificates import issue
from vnode.kubelet import listener
from vnode.kubelet.auth.authentication import UserInfo
from vnode.kubelet.auth.gate import Gate
from vnode.kubelet.delegates import ServedNode
from vnode.kubelet.listener import Listener
from vnode.kubelet.refusal import Refused
from vnode.kubelet.routes import Routes
from vnode.kubelet.streams.routes import Streams
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.connections import ConnectionLimits, UnauthenticatedConnections

Streamed = tuple[asyncio.StreamReader, asyncio.StreamWriter]

KNOWN = b"GET /healthz/ping HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ours\r\n\r\n"
UNKNOWN = b"GET /healthz/ping HTTP/1.1\r\nHost: x\r\n\r\n"
OK, UNAUTHORIZED = b"HTTP/1.1 200", b"HTTP/1.1 401"


class Knows:
    """Authorizes every request that has a token."""

    async def check(self, _node: str, request: Any) -> UserInfo:
        """Raise Refused (401) without a token."""
        if "Authorization" not in request.headers:
            raise Refused(401, "Unauthorized")

        return UserInfo("ours")


class Port:
    """Serves one port, and opens connections to it."""

    def __init__(self) -> None:
        self.unauthenticated = UnauthenticatedConnections()
        self._opened: list[asyncio.StreamWriter] = []
        node = ServedNode("v", cast("Any", SimpleNamespace()), cast("Any", None))
        routes = Routes(
            node,
            cast("Gate", Knows()),
            cast("Streams", SimpleNamespace(execute=None, attach=None, port_forward=None)),
            on_authorized=self.unauthenticated.on_authorized,
        )
        shown = issue("node")
        context = AskingContext(Pair(shown.pem, shown.key_pem))
        self.served = Listener(
            routes, listener.bind("127.0.0.1", 0, None, ()), context, self.unauthenticated
        )

    async def connect(self) -> Streamed:
        """Open a TLS connection."""
        context = certificates.unverified()
        streamed = await asyncio.open_connection("127.0.0.1", self.served.port, ssl=context)
        self._opened.append(streamed[1])
        return streamed

    async def close(self) -> None:
        """Abort the connections and close the port."""
        for writer in self._opened:
            writer.transport.abort()

        await self.served.close(0)


@pytest.fixture
async def port() -> AsyncIterator[Port]:
    made = Port()
    await made.served.start()
    yield made
    await made.close()


async def answer(streamed: Streamed, request: bytes) -> bytes:
    """Return version and status code of the answer; nothing if the connection ends instead."""
    reader, writer = streamed
    writer.write(request)
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""

    return head[: len(OK)]


async def ended(streamed: Streamed) -> bool:
    """Tell whether a connection ends without an answer."""
    async with asyncio.timeout(10):
        try:
            return await streamed[0].read() == b""
        except ConnectionError:
            return True


async def test_a_connection_without_a_request_is_ended(port) -> None:
    port.unauthenticated.limits = ConnectionLimits(seconds=0.05, idle=0.05)
    silent, slow = await port.connect(), await port.connect()
    slow[1].write(KNOWN[:-10])

    assert await ended(silent)
    assert await ended(slow)
    assert len(port.unauthenticated) == 0


async def test_connections_in_their_handshake_count_too(port) -> None:
    _reader, silent = await asyncio.open_connection("127.0.0.1", port.served.port)
    port._opened.append(silent)
    assert await answer(await port.connect(), KNOWN) == OK  # by then the first one was accepted
    assert len(port.unauthenticated._accepted) == 1


async def test_an_authorized_connection_stays(port) -> None:
    port.unauthenticated.limits = ConnectionLimits(seconds=0.2, idle=0.2)
    known = await port.connect()
    assert await answer(known, KNOWN) == OK
    assert await ended(await port.connect())  # later than `known` came

    assert await answer(known, KNOWN) == OK


async def test_a_refused_connection_stays_unauthenticated(port) -> None:
    port.unauthenticated.limits = ConnectionLimits(seconds=0.2, idle=0.2)
    refused = await port.connect()
    assert await answer(refused, UNKNOWN) == UNAUTHORIZED
    assert len(port.unauthenticated) == 1

    assert await ended(refused)


async def test_of_too_many_connections_the_oldest_ends_and_a_known_caller_gets_in(port) -> None:
    port.unauthenticated.limits = ConnectionLimits(connections=3)
    known = await port.connect()
    assert await answer(known, KNOWN) == OK
    first, *_others = [await port.connect() for _ in range(4)]

    assert await ended(first)
    assert len(port.unauthenticated) == 3
    assert await answer(await port.connect(), KNOWN) == OK
    assert await answer(known, KNOWN) == OK


async def test_a_request_s_head_is_bounded(port) -> None:
    port.unauthenticated.limits = ConnectionLimits(each=100_000)
    endless = b"".join(b"X-%d: %s\r\n" % (n, b"x" * 10_000) for n in range(20))

    assert await answer(await port.connect(), KNOWN[:-2] + endless + b"\r\n") == b""


@pytest.mark.parametrize(
    "more", [b"X: " + b"x" * 100_000 + b"\r\n", b"X: x\r\n" * 1000], ids=["long", "many"]
)
async def test_headers_are_bounded(port, more: bytes) -> None:
    assert await answer(await port.connect(), UNKNOWN[:-2] + more + b"\r\n") == b"HTTP/1.0 400"


async def test_the_connection_that_holds_most_ends_when_all_hold_too_much(port) -> None:
    port.unauthenticated.limits = ConnectionLimits(total=60_000)
    small, large = await port.connect(), await port.connect()
    small[1].write(KNOWN[:-2])
    large[1].write(b"GET /" + b"x" * 70_000)

    assert await ended(large)
    assert await answer(small, b"\r\n") == OK


async def test_a_long_command_is_no_reason_to_refuse(port) -> None:
    line = b"GET /healthz/ping?" + b"x" * 1_000_000 + b" HTTP/1.1"

    assert await answer(await port.connect(), KNOWN.replace(KNOWN.split(b"\r\n")[0], line)) == OK


async def test_a_connection_that_ended_is_forgotten(port) -> None:
    connected = await port.connect()
    assert await answer(connected, UNKNOWN) == UNAUTHORIZED
    connected[1].close()
    await connected[1].wait_closed()
    assert await answer(await port.connect(), KNOWN) == OK

    assert len(port.unauthenticated) == 0
