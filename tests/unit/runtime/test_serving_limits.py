"""Ports that ask for no credentials: whoever reaches one takes up neither the port nor memory."""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import pytest
from aiohttp import web

from tests import certificates
from tests.certificates import issue
from vnode.kube import tls_records
from vnode.runtime import serving
from vnode.runtime.certs import contexts
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.contexts import ReplaceableContext
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.connections import ConnectionLimits, UnauthenticatedConnections
from vnode.runtime.listening import IN_A_PASS, ListeningSocket, listen
from vnode.runtime.serving import Handler, Server

Streamed = tuple[asyncio.StreamReader, asyncio.StreamWriter]

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
OK = b"HTTP/1.1 200"


async def size(request: web.Request) -> web.Response:
    return web.Response(text=str(len(await request.read())))


class Port:
    """A port of a server that runs, and connections to it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.opened: list[asyncio.StreamWriter] = []

    async def connect(self, sent: bytes = b"") -> Streamed:
        """Open a connection, and send something."""
        streamed = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.opened.append(streamed[1])
        streamed[1].write(sent)
        return streamed

    async def ask(self, sent: bytes) -> bytes:
        """Return the answer to a request on a connection of its own."""
        return await answer(await self.connect(sent))


@asynccontextmanager
async def running(server: Server) -> AsyncIterator[Port]:
    port = Port(server)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(server.run())
        await server.ready.wait()
        try:
            yield port
        finally:
            for writer in port.opened:
                writer.transport.abort()

            task.cancel()


def serve(
    handler: Handler = size, limits: ConnectionLimits | None = None
) -> AbstractAsyncContextManager[Port]:
    app = web.Application(client_max_size=100_000)
    app.add_routes([web.route("*", "/", handler), web.route("*", "/other", size)])
    return running(Server("test", app, "127.0.0.1", 0, limits=limits))


async def answer(streamed: Streamed) -> bytes:
    """Return the line of the answer's status and its body; nothing if the connection ends."""
    try:
        head = await streamed[0].readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        body = await streamed[0].readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""

    return head[: len(OK)] + b" " + body


async def ended(streamed: Streamed) -> bool:
    try:
        return await streamed[0].read() == b""
    except ConnectionError:
        return True


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
