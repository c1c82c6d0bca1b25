"""A connection to a target's API server that asks to be upgraded.

Raw rather than through the HTTP client, which takes no connection out of its hands for SPDY.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from vnode import __version__
from vnode.kube.client import Client
from vnode.kubelet.refusal import Refused
from vnode.kubelet.streams import http_upgrade, sockets

_CONNECT: Final = 10.0  # seconds for TCP and TLS
_ANSWER: Final = 60.0  # seconds; a target's kubelet gives a client 30 to create its streams
_BODY: Final = 5.0  # seconds for the rest of an error answer


class Upstream(asyncio.Protocol):
    """Collects the answer; whoever takes the transport over takes `rest` with it."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.rest = bytearray()  # received and not yet claimed
        self.ended = False
        self.successor: asyncio.Protocol | None = None  # has the transport now, and will end it
        self._lost = False
        self._news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep it, up to a limit."""
        self.rest += data
        if len(self.rest) > http_upgrade.HEAD_LIMIT:
            self.transport.pause_reading()

        self._news.set()

    def eof_received(self) -> None:
        """No more will come."""
        self.ended = True
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """No more will come. TLS may say so to us though another protocol is in our place."""
        self.ended = self._lost = True
        self._news.set()
        if self.successor is not None:
            self.successor.connection_lost(exc)

    def hand_over(self, successor: asyncio.Protocol) -> None:
        """The transport has that protocol now, which hears of its end, also if that was before."""
        self.successor = successor
        if self._lost:
            successor.connection_lost(None)

    async def answer(self) -> http_upgrade.Answer:
        """The head of the answer. Raises TimeoutError, or Refused (502) if there is none."""
        async with asyncio.timeout(_ANSWER):
            while http_upgrade.END not in self.rest:
                await self._more()

        head, _end, rest = bytes(self.rest).partition(http_upgrade.END)
        self.rest = bytearray(rest)
        return http_upgrade.parse(head)

    async def body(self, answer: http_upgrade.Answer) -> bytes:
        """The body of an error answer, or as much of it as comes before long."""
        try:
            async with asyncio.timeout(_BODY):
                while not http_upgrade.complete(answer, bytes(self.rest)):
                    await self._more()
        except (TimeoutError, Refused):
            pass  # what has come is better than nothing

        body = bytes(self.rest)
        chunked = answer.header("transfer-encoding").lower() == "chunked"
        return http_upgrade.dechunked(body) if chunked else body

    async def _more(self) -> None:
        if self.ended or len(self.rest) > http_upgrade.HEAD_LIMIT:
            raise Refused(502, "the target's API server closed the connection without an answer")

        self._news.clear()
        await self._news.wait()


@asynccontextmanager
async def opened(
    client: Client,
    method: str,
    path: str,
    query: Iterable[tuple[str, str]],
    headers: http_upgrade.Headers,
) -> AsyncIterator[Upstream]:
    """A connection on which the request has been sent; aborted at the end if nobody took it over.

    Raises OSError (also for TLS), TimeoutError, and what the credentials' source raises.
    """
    url = urlsplit(client.endpoint.url)
    own = [("User-Agent", f"vnode/{__version__}")]
    if authorization := await client.authorization():
        own.append(("Authorization", authorization))

    head = http_upgrade.request(method, url.netloc, url.path + path, query, headers, own)
    loop = asyncio.get_running_loop()
    secure = client.endpoint.ssl
    async with asyncio.timeout(_CONNECT):
        transport, upstream = await loop.create_connection(
            Upstream,
            url.hostname or "",
            url.port or (443 if secure else 80),
            ssl=secure,
            server_hostname=(client.endpoint.server_name or url.hostname) if secure else None,
        )

    try:
        sockets.keep_alive(transport)
        transport.write(head)
        yield upstream
    finally:
        if upstream.successor is None:
            transport.abort()
