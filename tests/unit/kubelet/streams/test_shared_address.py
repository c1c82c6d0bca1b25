"""All streams come from the address of the API server: what one tenant sends, others do not pay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests import answering, certificates, virtual_nodes
from vnode.kube import tls_records
from vnode.kubelet import listener
from vnode.kubelet.listener import Listener
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.connections import UnauthenticatedConnections

ANSWER = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"


async def echoes(request: web.Request) -> web.StreamResponse:
    """Answer as a target whose command sends back what it gets."""
    assert request.transport is not None
    ended = asyncio.Event()

    class Echo(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            assert isinstance(request.transport, asyncio.Transport)
            request.transport.write(data)

        def connection_lost(self, exc: Exception | None) -> None:
            ended.set()

    request.transport.write(ANSWER)
    request.transport.set_protocol(Echo())
    await ended.wait()
    return web.Response()


@asynccontextmanager
async def port() -> AsyncIterator[int]:
    """Serve a virtual node as the agent does, and yield its port."""
    shown = certificates.issue("server")
    context = await asyncio.to_thread(AskingContext, Pair(shown.pem, shown.key_pem))
    async with answering.client(echoes, "c2") as client:
        disconnects = DisconnectWatch()
        connections = UnauthenticatedConnections()
        routes = virtual_nodes.routes_of(
            client, disconnects, on_authorized=connections.on_authorized
        )
        socket = listener.bind("127.0.0.1", 0, None, ())
        served = Listener(routes, socket, context, connections)
        await served.start()
        try:
            yield served.port
        finally:
            await served.close(0)
            disconnects.close()


async def opened(at: int, namespace: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream to the pod of a namespace."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", at, ssl=certificates.unverified(), server_hostname="x"
    )
    writer.write(
        f"POST /exec/{namespace}/web/main?command=cat&input=1&output=1 HTTP/1.1\r\nHost: x\r\n"
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
    return reader, writer


async def test_small_records_of_one_namespace_keep_no_stream_of_another_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tls_records, "AT_ONCE", 20_000)
    monkeypatch.setattr(tls_records, "PER_SECOND", 100)  # minutes for what is sent below
    async with port() as at, asyncio.timeout(8):
        _reader, hostile = await opened(at, "hostile")
        for _ in range(5_000):
            hostile.write(b"x")

        await hostile.drain()
        await asyncio.sleep(0.5)
        reader, writer = await opened(at, "default")
        for _ in range(3):
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"

        for each in (writer, hostile):
            each.transport.abort()


async def test_streams_of_a_namespace_share_a_pace_of_small_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever opens another stream has no other budget."""
    monkeypatch.setattr(tls_records, "AT_ONCE", 20_000)
    monkeypatch.setattr(tls_records, "PER_SECOND", 10_000)
    async with port() as at, asyncio.timeout(20):
        began = asyncio.get_running_loop().time()
        for _ in range(3):
            reader, writer = await opened(at, "hostile")
            for _ in range(1_000):  # 22,000 bytes in vain, or some more
                writer.write(b"x")

            await reader.readexactly(1_000)
            writer.transport.abort()

        assert asyncio.get_running_loop().time() - began > 3
