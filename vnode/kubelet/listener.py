"""Serves the kubelet API of one virtual node on an HTTPS port.

All ports share one TLS context, which gets a renewed certificate: ports and connections stay open
then, and connections keep their certificate.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from aiohttp import web

from vnode.kubelet.routes import Routes
from vnode.runtime.connections import GuardingProtocol, UnauthenticatedConnections
from vnode.runtime.listening import ListeningSocket, listen

_LINE_LIMIT: Final = 1024 * 1024  # bytes: a command is in the query; Go's servers take as much
_FIELD_LIMIT: Final = 64 * 1024  # bytes: a token is in a header
_BACKLOG: Final = 512  # connections
_HANDSHAKE: Final = 10.0  # seconds
_FLUSH: Final = 60.0  # seconds for a slow caller to read the last bytes of a session
_CLOSE_NOTIFY: Final = 1.0  # seconds for callers to answer a TLS close
_CLOSE_CHECKS: Final = 40
_SHORT_REQUESTS: Final = 2.0  # seconds that short requests get when the server stops

log = logging.getLogger(__name__)


class Listener:
    """Serves the routes of a virtual node on one socket."""

    def __init__(
        self,
        routes: Routes,
        listening: socket.socket,
        context: ssl.SSLContext,
        unauthenticated: UnauthenticatedConnections,
    ) -> None:
        self.port: int = listening.getsockname()[1]
        self._routes = routes
        self._socket = ListeningSocket(listening, unauthenticated)
        self._context = context
        self._unauthenticated = unauthenticated
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to accept connections."""
        runner = web.AppRunner(
            self._routes.application(),
            access_log=None,
            handler_cancellation=True,  # a caller that disconnects ends its handler
            shutdown_timeout=_SHORT_REQUESTS,
            max_line_size=_LINE_LIMIT,
            max_field_size=_FIELD_LIMIT,
        )
        await runner.setup()
        self._runner = runner
        serve = runner.server
        assert serve is not None, "set up"
        self._server = await asyncio.get_running_loop().create_server(
            lambda: GuardingProtocol(self._unauthenticated, serve()),
            sock=self._socket,
            ssl=self._context,
            backlog=_BACKLOG,
            ssl_handshake_timeout=_HANDSHAKE,
            ssl_shutdown_timeout=_FLUSH,
        )

    async def close(self, grace: float) -> None:
        """Stop accepting; long requests get `grace` seconds, then they are ended."""
        if self._server is not None:
            self._server.close()

        self._socket.close()
        serving = set(self._routes.serving)
        if serving and grace > 0:
            log.info("waiting up to %.0f s for %d open streams", grace, len(serving))
            await asyncio.wait(serving, timeout=grace)

        for task in self._routes.serving:
            task.cancel()

        if self._runner is not None:
            await _end(self._runner)


async def _end(runner: web.AppRunner) -> None:
    """Close the open connections and wait until they are closed: TLS exchanges a close_notify."""
    connections = runner.server.connections if runner.server is not None else []
    transports = [c.transport for c in connections if c.transport is not None]
    open_sockets = [t.get_extra_info("socket") for t in transports]
    await runner.cleanup()
    for _ in range(_CLOSE_CHECKS):  # only aiohttp's own protocol is notified of the end
        if all(s is None or s.fileno() < 0 for s in open_sockets):
            break

        await asyncio.sleep(_CLOSE_NOTIFY / _CLOSE_CHECKS)

    for left in open_sockets:
        if left is not None and left.fileno() >= 0:
            with suppress(OSError):
                left.shutdown(socket.SHUT_RDWR)


def bind(address: str, first: int, wanted: int | None, used: Collection[int]) -> socket.socket:
    """Listen on the wanted port if it is free, else on the next free one from `first`.

    Raises OSError if the address is not one of this host, or no port is free.
    """
    if first == 0:
        return listen(address, 0, _BACKLOG)

    candidates = [*([wanted] if wanted else ()), *range(first, min(first + 2000, 65536))]
    for port in candidates:
        if port in used:
            continue

        try:
            return listen(address, port, _BACKLOG)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise

    raise OSError(errno.EADDRINUSE, f"no free port on {address} from {first} upwards")
