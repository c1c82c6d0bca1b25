"""Sets socket options for connections that may be silent for hours."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

_IDLE: Final = 30  # seconds of silence before the first probe
_INTERVAL: Final = 10  # seconds between probes
_PROBES: Final = 3  # lost probes after which the other side counts as gone: a minute in all


def keep_alive(transport: asyncio.BaseTransport | None) -> None:
    """Detect a peer that vanished silently, without ever ending a silent session."""
    connection = transport.get_extra_info("socket") if transport is not None else None
    if connection is None:
        return

    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, value in (
        ("TCP_KEEPIDLE", _IDLE),
        ("TCP_KEEPINTVL", _INTERVAL),
        ("TCP_KEEPCNT", _PROBES),
    ):
        if hasattr(socket, option):  # not on every operating system
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
