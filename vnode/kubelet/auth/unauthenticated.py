"""Connections on which nobody was let in yet: how many, for how long, and how much they hold.

Anybody who reaches a port of the kubelet API may open connections and send the beginning of a
request; only then is it known who calls. All ports of a process share these bounds. Where they are
reached, those go who have been strangers longest or hold most, so that callers with credentials,
who are let in within milliseconds, come through while others try to keep them out.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from aiohttp import web

_MOST: Final = 512  # connections
_PATIENCE: Final = 30.0  # seconds from the handshake until let in; reviews may take as long
_EACH: Final = 1200 * 1024  # bytes: a request's line and headers, of which a command takes most
_TOGETHER: Final = 32 * 1024 * 1024  # bytes

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Connection:
    patience: asyncio.TimerHandle
    held: int = 0  # bytes that were received


class UnauthenticatedConnections:
    """Knows them from their first byte until the gate lets them in, or they leave."""

    def __init__(self) -> None:
        self._here: dict[asyncio.BaseTransport, _Connection] = {}  # who came first is first
        self._held = 0

    def __len__(self) -> int:
        return len(self._here)

    def let_in(self, request: web.Request) -> None:
        """The gate has let this request pass: its connection is no stranger's any more."""
        if request.transport is not None:
            self.forget(request.transport)

    def arrived(self, transport: asyncio.Transport) -> None:
        """A connection was made."""
        if len(self._here) >= _MOST:
            self._end(next(iter(self._here)), "there are too many")

        loop = asyncio.get_running_loop()
        patience = loop.call_later(_PATIENCE, self._end, transport, "it says nothing")
        self._here[transport] = _Connection(patience)

    def received(self, transport: asyncio.BaseTransport, size: int) -> None:
        """So many bytes more came on a connection, a stranger's or not."""
        connection = self._here.get(transport)
        if connection is None:
            return

        connection.held += size
        self._held += size
        if connection.held > _EACH:
            self._end(transport, "it sends too much")
        elif self._held > _TOGETHER:
            self._end(max(self._here, key=lambda each: self._here[each].held), "all hold too much")

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """It is no stranger's any more, or it is gone."""
        if connection := self._here.pop(transport, None):
            connection.patience.cancel()
            self._held -= connection.held

    def _end(self, transport: asyncio.BaseTransport, why: str) -> None:
        log.debug("a connection without a known caller is ended: %s", why)
        self.forget(transport)
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()


class GuardingProtocol(asyncio.Protocol):
    """The server's own protocol, and the strangers told of what happens on its connection."""

    def __init__(
        self, unauthenticated: UnauthenticatedConnections, served: asyncio.Protocol
    ) -> None:
        self._unauthenticated = unauthenticated
        self._served = served
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connected, after the handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._unauthenticated.arrived(transport)
        self._served.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Some bytes."""
        self._unauthenticated.received(self._transport, len(data))
        self._served.data_received(data)

    def eof_received(self) -> bool | None:
        """No more will come."""
        return self._served.eof_received()

    def pause_writing(self) -> None:
        """The caller takes nothing for now."""
        self._served.pause_writing()

    def resume_writing(self) -> None:
        """The caller takes again."""
        self._served.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._unauthenticated.forget(self._transport)
        self._served.connection_lost(exc)
