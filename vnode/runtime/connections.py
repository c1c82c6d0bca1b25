"""Limits unauthenticated connections: their number, their age, and the bytes that they hold.

Anybody who reaches a port may open connections and send the beginning of a request; only then the
caller is known, and on some ports never. All ports of the kubelet API share these limits, every
other port has its own. When a limit is reached, the connection is ended that is oldest or holds
most, so that callers with credentials, who are authenticated within milliseconds, and those that
send whole requests get through a flood of others.

An API server opens more connections than it needs at once, keeps them, and fails a request that it
sends on one that is ended in the same moment. So those on which nothing came yet may be silent for
as long as those between two requests, and those on which something was served are counted apart.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from weakref import WeakValueDictionary

from aiohttp import web

from vnode.kube import tls_records
from vnode.kube.tls_records import RecordBudget

_KIB: Final = 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Says how many connections a port has, how long a request may take, and how large it may be.

    The defaults are those of the kubelet API, where reviews may take half a minute, and a command
    is in a request's head.
    """

    connections: int = 512  # and as many in their TLS handshake, and of which a request was served
    seconds: float = 30.0  # from the first byte of a request to its end
    idle: float = 30.0  # seconds from the handshake to a request, and from one to the next
    each: int = 1200 * _KIB  # bytes of a request: its line, its headers and its body
    total: int = 32 * _KIB * _KIB  # bytes of all requests that are not read yet


@dataclass(slots=True)
class _Connection:
    timeout: asyncio.TimerHandle
    held: int = 0  # bytes of the present request, and of its answer
    idle: bool = True  # before the first byte of a request


class UnauthenticatedConnections:
    """Tracks connections until their caller is authorized, or they are gone."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self._connections: dict[asyncio.BaseTransport, _Connection] = {}  # longest idle first
        # Those of them that have been served, in the same order.
        self._served: dict[asyncio.BaseTransport, None] = {}
        self._held = 0
        # By descriptor, those whose TLS handshake is not done, oldest first; closed ones are
        # forgotten when there are too many.
        self._accepted: dict[int, socket.socket] = {}
        # By address, for as long as connections of it are open.
        self._records: WeakValueDictionary[str, RecordBudget] = WeakValueDictionary()

    def records_of(self, address: str) -> RecordBudget:
        """Return what TLS records may have in vain on all connections that come from an address."""
        budget = self._records.get(address)
        if budget is None:
            self._records[address] = budget = RecordBudget()

        return budget

    def __len__(self) -> int:
        return len(self._connections)

    def on_authorized(self, request: web.Request) -> None:
        """Forget the connection of a request whose caller is authorized."""
        if request.transport is not None:
            self.forget(request.transport)

    def on_accepted(self, accepted: socket.socket) -> None:
        """Track a connection until its handshake is done; end the oldest one if there are many."""
        descriptor = accepted.fileno()
        self._accepted.pop(descriptor, None)
        if len(self._accepted) >= self.limits.connections:
            self._accepted = {d: s for d, s in self._accepted.items() if s.fileno() == d}

        if len(self._accepted) >= self.limits.connections:
            log.debug("an unauthenticated connection is ended: too many handshakes")
            with suppress(OSError):  # gone already
                self._accepted.pop(next(iter(self._accepted))).shutdown(socket.SHUT_RDWR)

        self._accepted[descriptor] = accepted

    def on_connected(self, transport: asyncio.Transport) -> None:
        """Track a new connection; end the oldest one of its kind if there are too many."""
        if (connected := transport.get_extra_info("socket")) is not None:
            self._accepted.pop(connected.fileno(), None)

        if len(self._connections) - len(self._served) >= self.limits.connections:
            oldest = next(each for each in self._connections if each not in self._served)
            self._end(oldest, "too many connections")

        self._connections[transport] = _Connection(self._timeout(transport, self.limits.idle))

    def on_served(self, request: web.Request) -> None:
        """Wait for another request on a connection whose request has been answered."""
        if (transport := request.transport) is not None and transport in self._connections:
            self.forget(transport)
            if len(self._served) >= self.limits.connections:
                self._end(next(iter(self._served)), "too many connections")

            self._connections[transport] = _Connection(self._timeout(transport, self.limits.idle))
            self._served[transport] = None

    def on_answering(self, request: web.Request, size: int) -> None:
        """Count the bytes of an answer, which its caller may be slow to read."""
        connection = self._connections.get(request.transport) if request.transport else None
        if connection is not None:
            self._hold(connection, size)

    def on_received(self, transport: asyncio.BaseTransport, size: int) -> None:
        """Count bytes that came on a connection, authenticated or not."""
        connection = self._connections.get(transport)
        if connection is None:
            return

        if connection.idle:
            connection.idle = False
            connection.timeout.cancel()
            connection.timeout = self._timeout(transport, self.limits.seconds)

        if connection.held + size > self.limits.each:
            self._end(transport, "it sends too much")
        else:
            self._hold(connection, size)

    def _hold(self, connection: _Connection, size: int) -> None:
        connection.held += size
        self._held += size
        if self._held > self.limits.total:
            largest = max(self._connections, key=lambda key: self._connections[key].held)
            self._end(largest, "all together hold too much")

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """Stop tracking a connection: its caller is authorized, or it is gone."""
        self._served.pop(transport, None)
        if connection := self._connections.pop(transport, None):
            connection.timeout.cancel()
            self._held -= connection.held

    def _timeout(self, transport: asyncio.BaseTransport, seconds: float) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(seconds, self._end, transport, "no request in time")

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
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        tls_records.keep_pace(transport, self._unauthenticated.records_of(address), address)
        self._unauthenticated.on_connected(transport)
        self._served.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Count the bytes, and pass them on unless they are too many.

        aiohttp would begin with a request whose connection is gone, and log a traceback.
        """
        self._unauthenticated.on_received(self._transport, len(data))
        if not self._transport.is_closing():
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
