"""Limits unauthenticated connections: their number, their age, and the bytes that they hold.

Anybody who reaches a port of the kubelet API may open connections and send the beginning of a
request; only then the caller is known. All ports of a process share these limits. When a limit is
reached, the unauthenticated connection is ended that is oldest or holds most, so that callers with
credentials, who are authenticated within milliseconds, get through a flood of others.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from aiohttp import web

_MOST: Final = 512  # connections
_TIMEOUT: Final = 30.0  # seconds from the handshake to authentication; reviews may take as long
_EACH: Final = 1200 * 1024  # bytes: a request's line and headers, of which a command takes most
_TOTAL: Final = 32 * 1024 * 1024  # bytes

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Connection:
    timeout: asyncio.TimerHandle
    held: int = 0  # bytes received


class UnauthenticatedConnections:
    """Tracks connections until the gate authorizes a request on them, or they are gone."""

    def __init__(self) -> None:
        self._connections: dict[asyncio.BaseTransport, _Connection] = {}  # oldest first
        self._held = 0

    def __len__(self) -> int:
        return len(self._connections)

    def on_authorized(self, request: web.Request) -> None:
        """Forget the connection of a request that the gate has let pass."""
        if request.transport is not None:
            self.forget(request.transport)

    def on_connected(self, transport: asyncio.Transport) -> None:
        """Track a new connection; end the oldest one if there are too many."""
        if len(self._connections) >= _MOST:
            self._end(next(iter(self._connections)), "too many connections")

        loop = asyncio.get_running_loop()
        timeout = loop.call_later(_TIMEOUT, self._end, transport, "no request in time")
        self._connections[transport] = _Connection(timeout)

    def on_received(self, transport: asyncio.BaseTransport, size: int) -> None:
        """Count bytes that came on a connection, authenticated or not."""
        connection = self._connections.get(transport)
        if connection is None:
            return

        connection.held += size
        self._held += size
        if connection.held > _EACH:
            self._end(transport, "it sends too much")
        elif self._held > _TOTAL:
            largest = max(self._connections, key=lambda key: self._connections[key].held)
            self._end(largest, "all together hold too much")

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """Stop tracking a connection: its caller is authorized, or it is gone."""
        if connection := self._connections.pop(transport, None):
            connection.timeout.cancel()
            self._held -= connection.held

    def _end(self, transport: asyncio.BaseTransport, why: str) -> None:
        log.debug("an unauthenticated connection is ended: %s", why)
        self.forget(transport)
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()


class GuardingProtocol(asyncio.Protocol):
    """Passes everything on to the server's own protocol, and counts for the limits."""

    def __init__(
        self, unauthenticated: UnauthenticatedConnections, served: asyncio.Protocol
    ) -> None:
        self._unauthenticated = unauthenticated
        self._served = served
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Track the connection, after its handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._unauthenticated.on_connected(transport)
        self._served.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Count the bytes and pass them on."""
        self._unauthenticated.on_received(self._transport, len(data))
        self._served.data_received(data)

    def eof_received(self) -> bool | None:
        return self._served.eof_received()

    def pause_writing(self) -> None:
        self._served.pause_writing()

    def resume_writing(self) -> None:
        self._served.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop tracking the connection."""
        self._unauthenticated.forget(self._transport)
        self._served.connection_lost(exc)
