"""Handshakes and records of TLS, which callers send before anybody knows who they are."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests import certificates
from tests.certificates import issue
from tests.unit.runtime.served_port import (
    GET,
    OK,
    Port,
    answer,
    running,
    size,
)
from vnode.kube import tls_records
from vnode.runtime.certs import contexts
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.contexts import ReplaceableContext
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.connections import ConnectionLimits, UnauthenticatedConnections
from vnode.runtime.serving import Server


async def test_of_too_many_handshakes_the_oldest_ends_and_a_caller_gets_through() -> None:
    """A connection that begins with nothing, or half a ClientHello, is in its handshake."""
    shown = issue("localhost")
    context = ReplaceableContext()
    await asyncio.to_thread(context.serve, Pair(shown.pem, shown.key_pem))
    limits = ConnectionLimits(connections=8, seconds=60)
    app = web.Application()
    app.add_routes([web.get("/", size)])
    server = Server("test", app, "127.0.0.1", 0, ssl_context=context, limits=limits)
    async with running(server) as port:
        silent = [await port.connect(b"\x16\x03\x01" * (i % 2)) for i in range(20)]
        for reader, _writer in silent[:12]:
            assert await reader.read() == b"", "ended, long before the handshake's own end"

        assert not any(reader.at_eof() for reader, _writer in silent[12:])
        known = certificates.unverified()
        caller = await asyncio.open_connection("127.0.0.1", server.port, ssl=known)
        port.opened.append(caller[1])
        for _ in range(2):
            caller[1].write(GET)
            assert (await answer(caller)).startswith(OK)
            silent = [await port.connect() for _ in range(20)]
            for reader, _writer in silent[:12]:  # the caller, which is older, is past its handshake
                assert await reader.read() == b""


async def test_connections_that_were_closed_are_no_handshakes() -> None:
    connections = UnauthenticatedConnections(ConnectionLimits(connections=2))
    pairs = [socket.socketpair() for _ in range(5)]
    try:
        for ours, _theirs in pairs[:2]:
            connections.on_accepted(ours)

        pairs[1][0].close()
        connections.on_accepted(pairs[2][0])
        pairs[0][1].setblocking(False)
        with pytest.raises(BlockingIOError):  # it was not ended
            pairs[0][1].recv(1)

        connections.on_accepted(pairs[3][0])
        assert pairs[0][1].recv(1) == b""
    finally:
        for each in itertools.chain(*pairs):
            each.close()


class Records:
    """A client that sends each piece of a request in a TLS record of its own."""

    def __init__(self, port: Port) -> None:
        self._port = port
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = certificates.unverified().wrap_bio(self._incoming, self._outgoing)

    async def connect(self) -> None:
        """Open a connection, and do the handshake."""
        self._reader, self._writer = await self._port.connect()
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._writer.write(self._outgoing.read())
                self._incoming.write(await self._reader.read(1 << 16))
            else:
                self._writer.write(self._outgoing.read())
                return

    def send(self, *pieces: bytes) -> None:
        """Send each as a record."""
        for piece in pieces:
            self._tls.write(piece)

        self._writer.write(self._outgoing.read())

    async def receive(self) -> bytes:
        """Return the beginning of the answer; nothing if the connection ends instead."""
        while True:
            try:
                return self._tls.read(len(OK))
            except ssl.SSLWantReadError:
                arrived = await self._reader.read(1 << 16)
                if not arrived:
                    return b""

                self._incoming.write(arrived)


@asynccontextmanager
async def serve_tls(asks: bool) -> AsyncIterator[Port]:
    shown = issue("server")
    pair = Pair(shown.pem, shown.key_pem)
    make = AskingContext if asks else contexts.server_context
    context = await asyncio.to_thread(make, pair)
    app = web.Application()
    app.add_routes([web.get("/", size)])
    async with running(Server("test", app, "127.0.0.1", 0, ssl_context=context)) as port:
        yield port


def in_small_records(count: int) -> list[bytes]:
    """Return a request in so many pieces of one byte."""
    head = b"GET / HTTP/1.1\r\nHost: x\r\nX: "
    return [head, *[b"x"] * (count - 2), b"\r\n\r\n"]


TLS_OF = pytest.mark.parametrize("asks", [False, True], ids=["ssl", "pyOpenSSL"])


@TLS_OF
async def test_records_of_one_byte_and_key_updates_have_a_pace(
    asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_records, "PER_SECOND", 100_000)
    monkeypatch.setattr(tls_records, "AT_ONCE", 10_000)
    async with serve_tls(asks) as port:
        slow, usual = Records(port), Records(port)
        await slow.connect()
        await usual.connect()
        began = asyncio.get_running_loop().time()
        slow.send(*in_small_records(2000))  # 44,000 bytes in vain
        usual.send(GET)
        assert await usual.receive() == OK
        assert await slow.receive() == OK
        assert asyncio.get_running_loop().time() - began > 0.25


@TLS_OF
async def test_a_caller_that_sends_next_to_nothing_but_records_is_cut_off(
    asks: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_records, "_WASTE", 20_000)
    async with serve_tls(asks) as port:
        futile = Records(port)
        await futile.connect()
        futile.send(*in_small_records(2000))

        assert await futile.receive() == b""

    assert "127.0.0.1 sends next to nothing but TLS records" in caplog.text


@TLS_OF
async def test_a_large_request_in_full_records_is_served_at_once(
    asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_records, "AT_ONCE", 2_000)
    monkeypatch.setattr(tls_records, "PER_SECOND", 1)
    async with serve_tls(asks) as port:
        usual = Records(port)
        await usual.connect()
        body = b"x" * 1_000_000
        head = b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        usual.send(head, *(body[start : start + 16_384] for start in range(0, len(body), 16_384)))

        assert await usual.receive() == OK
