"""Listens for connections, and has each counted from the moment at which it is accepted.

asyncio tells a server of a connection once its TLS handshake is done. Whoever does not finish the
handshake would hold a file descriptor and buffers that nobody counts.

asyncio accepts all connections that have come at once, and each handshake takes a millisecond or
so, in which nothing else happens. So some are accepted in each pass of the event loop, and callers
that are connected already wait for a few handshakes at most.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

from vnode.runtime.connections import UnauthenticatedConnections

IN_A_PASS: Final = 2
"""Connections that are accepted in one pass of the event loop."""


class ListeningSocket(socket.socket):
    """Reports accepted connections to `connections`; it replaces a socket that listens."""

    def __init__(self, replaced: socket.socket, connections: UnauthenticatedConnections) -> None:
        super().__init__(replaced.family, replaced.type, replaced.proto, fileno=replaced.detach())
        self._connections = connections
        self._left = IN_A_PASS
        self.setblocking(False)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; asyncio calls this, and again in the next pass if others wait."""
        if not self._left:
            raise BlockingIOError

        connection, address = super().accept()
        if self._left == IN_A_PASS:
            asyncio.get_running_loop().call_soon(self._begin_pass)

        self._left -= 1
        self._connections.on_accepted(connection)
        return connection, address

    def _begin_pass(self) -> None:
        self._left = IN_A_PASS


def listen(address: str, port: int, backlog: int) -> socket.socket:
    """Listen on a port of an address; OSError if that is impossible."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=backlog)
