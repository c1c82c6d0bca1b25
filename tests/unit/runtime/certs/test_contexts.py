"""Serving certificates: trusted by real TLS, and only clients of the present CA get in."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp import web

from tests.apiserver.server import APIServer
from vnode.api import kinds
from vnode.api.clock import SystemClock
from vnode.runtime import serving
from vnode.runtime.certs import authority, contexts, issued, keypairs
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.contexts import ReplaceableContext
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.certs.keypairs import CertificateRequest, Pair
from vnode.runtime.serving import Server

NOW = datetime.now(UTC)
CA = keypairs.make_authority(NOW)
OTHER_CA = keypairs.make_authority(NOW)


async def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """Return what the client reads after a TLS handshake with the server."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client, server_hostname=name
        )
        try:
            return await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                await writer.wait_closed()


async def is_refused(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Return the client gets nothing; with TLS 1.3 it may only learn why when it reads."""
    try:
        return await handshake(server, client, "127.0.0.1") == b""
    except (ssl.SSLError, ConnectionError):
        return True


async def serving_with(pair: Pair, clients: bytes | None = None) -> ReplaceableContext:
    context = ReplaceableContext()
    await asyncio.to_thread(context.serve, pair, clients)
    return context


async def client_of(bundle: bytes, pair: Pair | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=bundle.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if pair is not None:
        await asyncio.to_thread(contexts._load, context, pair)

    return context


@pytest.mark.parametrize("host", ["127.0.0.1", "vnode.vnode.svc", "fd00::1"])
async def test_a_server_is_trusted_under_each_of_its_names(host: str) -> None:
    request = CertificateRequest("web", ("127.0.0.1", "vnode.vnode.svc", "fd00::1"))
    server = await serving_with(keypairs.issue(CA, request, NOW))
    assert await handshake(server, await client_of(CA.certificate), host) == b"hello"


async def test_a_new_certificate_serves_the_next_handshake() -> None:
    server = await serving_with(keypairs.issue(CA, CertificateRequest("a", ("old",)), NOW))
    new = keypairs.issue(CA, CertificateRequest("a", ("new",)), NOW)
    await asyncio.to_thread(server.serve, new)
    assert await handshake(server, await client_of(CA.certificate), "new") == b"hello"


async def test_only_clients_of_the_ca_get_in() -> None:
    own = keypairs.issue(CA, CertificateRequest("web", ("127.0.0.1",)), NOW)
    server = await serving_with(own, CA.certificate)
    pair = keypairs.issue(CA, CertificateRequest(issued.CLIENT), NOW)
    assert await handshake(server, await client_of(CA.certificate, pair), "127.0.0.1") == b"hello"
    strange = keypairs.issue(OTHER_CA, CertificateRequest(issued.CLIENT), NOW)
    for refused in (strange, own, None):
        assert await is_refused(server, await client_of(CA.certificate, refused))


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_nobody_gets_a_ticket_for_another_connection(version: ssl.TLSVersion) -> None:
    pair = keypairs.issue(CA, CertificateRequest("web", ("127.0.0.1",)), NOW)
    client = await client_of(CA.certificate)
    client.maximum_version = version
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    far = (await serving_with(pair)).wrap_bio(up, down, server_side=True)
    near = client.wrap_bio(down, up, server_hostname="127.0.0.1")
    for side in (near, far) * 3:
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()

    far.write(b"hello")
    assert near.read(5) == b"hello"
    assert near.version() == version.name.replace("_", ".")
    assert near.session is None or not near.session.has_ticket


async def page(_request: web.Request) -> web.Response:
    return web.Response()


class Agents:
    """An agent's extender, with a CA in an API server in memory."""

    def __init__(self) -> None:
        self.client = APIServer("c1", SystemClock()).client()
        self.authority = Authority(self.client, "vnode")
        self.certificate = ServingCertificate(
            self.authority, "extender", ("127.0.0.1",), clients=True
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Server]:
        await self.client.create(kinds.NAMESPACES, {"metadata": {"name": "vnode"}})
        await self.authority.load()
        app = web.Application(
            middlewares=[serving.only_client(issued.CLIENT, self.authority.trusts)]
        )
        app.router.add_get("/", page)
        context = await self.certificate.start()
        server = Server("x", app, "127.0.0.1", 0, ssl_context=context, authenticates=True)
        async with asyncio.TaskGroup() as group:
            parts = (self.authority, self.certificate, server)
            tasks = [group.create_task(part.run()) for part in parts]
            await server.ready.wait()
            yield server
            for task in tasks:
                task.cancel()

    async def credentials(self) -> ssl.SSLContext:
        pair = await self.authority.issue(CertificateRequest(issued.CLIENT))
        return await client_of(self.authority.bundle, pair)

    async def replace_ca(self) -> None:
        """Delete the Secret as an operator does, and wait until the agents serve with a new CA."""
        renewed = asyncio.Event()
        self.certificate.on_renewal(renewed.set)
        await self.client.delete(kinds.SECRETS, authority.SECRET, "vnode")
        async with asyncio.timeout(20):
            await renewed.wait()


async def test_a_client_certificate_of_a_deleted_ca_is_refused_by_tls() -> None:
    agents = Agents()
    async with agents.run():
        old, trusted = await agents.credentials(), agents.authority.bundle
        assert await handshake(agents.certificate.context, old, "127.0.0.1") == b"hello"
        await agents.replace_ca()
        old.load_verify_locations(cadata=agents.authority.bundle.decode())
        assert agents.authority.bundle != trusted
        assert await is_refused(agents.certificate.context, old)
        new = await agents.credentials()
        assert await handshake(agents.certificate.context, new, "127.0.0.1") == b"hello"


async def test_a_connection_that_is_open_is_no_way_around_that() -> None:
    agents = Agents()
    async with agents.run() as server:
        connector = aiohttp.TCPConnector(ssl=await agents.credentials())
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"https://127.0.0.1:{server.port}/"
            async with session.get(url) as answer:
                assert answer.status == 200

            await agents.replace_ca()
            async with session.get(url) as answer:
                assert (answer.status, await answer.text()) == (
                    403,
                    "the certificate is of a former CA\n",
                )
