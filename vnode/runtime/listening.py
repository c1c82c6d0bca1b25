"""Listens for connections, and has each counted from the moment at which it is accepted.

asyncio tells a server of a connection once its TLS handshake is done. Whoever does not finish the
handshake would hold a file descriptor and buffers that nobody counts.
"""

from __future__ import annotations

import socket
from typing import Any

from vnode.runtime.connections import UnauthenticatedConnections


class ListeningSocket(socket.socket):
    """Reports accepted connections to `connections`; it replaces a socket that listens."""

    def __init__(self, replaced: socket.socket, connections: UnauthenticatedConnections) -> None:
        super().__init__(replaced.family, replaced.type, replaced.proto, fileno=replaced.detach())
        self._connections = connections
        self.setblocking(False)

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; asyncio calls this."""
        connection, address = super().accept()
        self._connections.on_accepted(connection)
        return connection, address


def listen(address: str, port: int, backlog: int) -> socket.socket:
    """Listen on a port of an address; OSError if that is impossible."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=backlog)
