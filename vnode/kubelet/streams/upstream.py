"""Opens a connection to a target's API server and requests an upgrade.

It is a raw connection, because the HTTP client does not hand one over for SPDY.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from vnode import __version__
from vnode.kube import lookups
from vnode.kube.client import Client
from vnode.kubelet.refusal import Refused
from vnode.kubelet.streams import http_upgrade, sockets

_CONNECT: Final = 10.0  # seconds for TCP and TLS
_ANSWER: Final = 60.0  # seconds; a target's kubelet gives a client 30 to create its streams
_BODY: Final = 5.0  # seconds for the rest of an error answer


class Upstream(asyncio.Protocol):
    """Collects the answer; the protocol that takes over the transport also gets `rest`."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.rest = bytearray()  # received and not yet parsed
        self.ended = False
        self.authorization: str | None = None  # as it was sent
        self.successor: asyncio.Protocol | None = None  # owns the transport now, and closes it
        self._lost = False
        self._received = asyncio.Event()  # set by bytes and by the end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep the data, up to a limit."""
        self.rest += data
        if len(self.rest) > http_upgrade.HEAD_LIMIT:
            self.transport.pause_reading()

        self._received.set()

    def eof_received(self) -> None:
        """Note the end."""
        self.ended = True
        self._received.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end, for a successor too: TLS may call this after it has taken over."""
        self.ended = self._lost = True
        self._received.set()
        if self.successor is not None:
            self.successor.connection_lost(exc)

    def hand_over(self, successor: asyncio.Protocol) -> None:
        """Give the transport to another protocol, and notify it if the connection was lost."""
        self.successor = successor
        if self._lost:
            successor.connection_lost(None)

    async def answer(self) -> http_upgrade.Answer:
        """Return the head of the answer. Raises TimeoutError, or Refused (502) if none comes."""
        async with asyncio.timeout(_ANSWER):
            looked = 0  # an answer may come byte by byte
            while (end := self.rest.find(http_upgrade.END, looked)) < 0:
                looked = max(0, len(self.rest) - len(http_upgrade.END))
                await self._wait()

        head, self.rest = bytes(self.rest[:end]), self.rest[end + len(http_upgrade.END) :]
        return http_upgrade.parse(head)

    async def body(self, answer: http_upgrade.Answer) -> bytes:
        """Return the body of an error answer, or as much of it as comes within seconds."""
        try:
            async with asyncio.timeout(_BODY):
                while not http_upgrade.is_complete(answer, self.rest):
                    await self._wait()
        except (TimeoutError, Refused):
            pass  # a part of the body is better than nothing

        body = bytes(self.rest[: http_upgrade.BODY_LIMIT])
        chunked = answer.header("transfer-encoding").lower() == "chunked"
        return http_upgrade.dechunk(body) if chunked else body

    async def _wait(self) -> None:
        if self.ended or len(self.rest) > http_upgrade.HEAD_LIMIT:
            raise Refused(502, "the target's API server closed the connection without an answer")

        self._received.clear()
        await self._received.wait()


@asynccontextmanager
async def connect(
    client: Client,
    method: str,
    path: str,
    query: str,
    headers: http_upgrade.Headers,
) -> AsyncIterator[Upstream]:
    """Connect and send the request; abort at the end unless the transport was handed over.

    Raises OSError (also for TLS), TimeoutError, and the errors of the credentials.
    """
    url = urlsplit(client.endpoint.url)
    own = [("User-Agent", f"vnode/{__version__}")]
    if authorization := await client.authorization():
        own.append(("Authorization", authorization))

    head = http_upgrade.request(method, url.netloc, url.path + path, query, headers, own)
    async with asyncio.timeout(_CONNECT):
        transport, upstream = await _connected(client, url.hostname or "", url.port)

    upstream.authorization = authorization
    try:
        sockets.keep_alive(transport)
        transport.write(head)
        yield upstream
    finally:
        if upstream.successor is None:
            transport.abort()


async def _connected(
    client: Client, host: str, port: int | None
) -> tuple[asyncio.Transport, Upstream]:
    """Connect to the first address of a server that lets us."""
    loop, secure = asyncio.get_running_loop(), client.endpoint.ssl
    number = port or (443 if secure else 80)
    server_name = (client.endpoint.server_name or host) if secure else None
    failure = OSError(f"{host} has no address")
    for address in await lookups.addresses(host, number):
        try:
            return await loop.create_connection(
                Upstream, address, number, ssl=secure, server_hostname=server_name
            )
        except OSError as error:
            failure = error

    raise failure
