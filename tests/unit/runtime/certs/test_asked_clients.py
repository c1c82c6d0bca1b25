"""TLS that takes any client certificate: against Python's own `ssl` as the client."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509

from tests.certificates import CLIENT, KeyAndCertificate, issue
from vnode.api.errors import ConfigError
from vnode.runtime.certs import asked_clients as tls
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.keypairs import Pair

VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
SERVER = issue("server")
STRANGER = issue("stranger", issue("nowhere", ca=True), usages=[CLIENT])

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]


def trusting(shown: KeyAndCertificate | None = None, *issuers: KeyAndCertificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return shown.show(context, *issuers) if shown else context


@asynccontextmanager
async def served(serve: Serve) -> AsyncIterator[int]:
    """Yield the port of a server of this kind."""
    context = AskingContext(Pair(SERVER.pem, SERVER.key_pem))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def connect(port: int, context: ssl.SSLContext):
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()

    writer.close()


async def shown_to_a_server(context: ssl.SSLContext) -> Sequence[x509.Certificate]:
    seen: list[Sequence[x509.Certificate]] = []

    async def look(request: web.Request) -> web.Response:
        seen.append(tls.peer_certificates(request.get_extra_info("ssl_object")))
        assert request.get_extra_info("peercert") is None
        return web.Response(text="ok")

    app = web.Application()
    app.router.add_get("/", look)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(
        runner,
        "127.0.0.1",
        0,
        ssl_context=AskingContext(Pair(SERVER.pem, SERVER.key_pem)),
    )
    await site.start()
    try:
        url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
        async with aiohttp.ClientSession() as session, session.get(url, ssl=context) as answer:
            assert answer.status == 200
    finally:
        await runner.cleanup()

    return seen[0]


@VERSIONS
async def test_a_certificate_of_nobody_we_know_comes_through_unbelieved(version):
    context = trusting(STRANGER)
    context.maximum_version = version

    assert await shown_to_a_server(context) == (STRANGER.certificate,)


@VERSIONS
async def test_without_a_certificate_there_is_none(version):
    context = trusting()
    context.maximum_version = version

    assert await shown_to_a_server(context) == ()


async def test_intermediates_come_after_the_certificate():
    intermediate = issue("team", issue("root", ca=True), ca=True)
    leaf = issue("me", intermediate, usages=[CLIENT])

    shown = await shown_to_a_server(trusting(leaf, intermediate))

    assert shown == (leaf.certificate, intermediate.certificate)


@VERSIONS
async def test_megabytes_arrive_unchanged_both_ways(version):
    content = bytes(range(256)) * 4096 * 8
    context = trusting()
    context.maximum_version = version
    async with served(echo) as port, asyncio.timeout(20):
        reader, writer = await connect(port, context)
        sending = asyncio.create_task(send(writer, content), name="send")
        assert await reader.readexactly(len(content)) == content
        await sending
        writer.close()
        await writer.wait_closed()


async def send(writer: asyncio.StreamWriter, content: bytes) -> None:
    for start in range(0, len(content), 100_000):
        writer.write(content[start : start + 100_000])
        await writer.drain()


@VERSIONS
async def test_no_session_is_resumed(version):
    """A resumed session would carry a certificate whose key nobody proved this time."""
    context = trusting(STRANGER)
    context.maximum_version = version
    async with served(echo) as port, asyncio.timeout(10):
        session = None
        for _ in range(2):
            reused, session = await asyncio.to_thread(_converse, port, context, session)
            assert not reused


def _converse(port, context, session):
    with (
        socket.create_connection(("127.0.0.1", port)) as bare,
        context.wrap_socket(bare, session=session) as secured,
    ):
        secured.sendall(b"x")
        assert secured.recv(1) == b"x"
        return secured.session_reused, secured.session


async def test_the_peers_end_is_seen_and_answered():
    ended = asyncio.Event()

    async def until_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b"all of it"
        ended.set()
        writer.close()

    async with served(until_the_end) as port, asyncio.timeout(5):
        reader, writer = await connect(port, trusting())
        writer.write(b"all of it")
        writer.close()
        await ended.wait()
        assert await reader.read() == b""


async def test_what_is_not_tls_ends_that_connection_only():
    async with served(echo) as port, asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.read()
        writer.close()

        reader, writer = await connect(port, trusting())
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"
        writer.close()


def test_a_key_of_another_certificate_is_refused():
    with pytest.raises(ConfigError, match="private key"):
        AskingContext(Pair(SERVER.pem, issue("other").key_pem))
