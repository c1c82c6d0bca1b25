"""TCP connections whose silent loss is noticed.

A NAT gateway, a firewall or a load balancer may forget a connection without a word to either side.
Whoever only listens on it, as a watch does, would then wait for as long as it is ready to. So the
kernel asks the other side for a sign of life where nothing has been heard for a while.
"""

from __future__ import annotations

import socket
from typing import Any, Final

IDLE: Final = 15  # seconds without a byte until the first probe
INTERVAL: Final = 5  # seconds between probes
PROBES: Final = 3  # without an answer, until the connection is given up

LOST_AFTER: Final = IDLE + INTERVAL * PROBES
"""Seconds after which a connection that carries nothing any more breaks."""

_OPTIONS: Final = (
    ("TCP_KEEPIDLE", IDLE),
    ("TCP_KEEPALIVE", IDLE),  # as macOS calls it
    ("TCP_KEEPINTVL", INTERVAL),
    ("TCP_KEEPCNT", PROBES),
    ("TCP_USER_TIMEOUT", LOST_AFTER * 1000),  # the same for what was sent and is not acknowledged
)


def kept_alive(address: tuple[Any, ...]) -> socket.socket:
    """A socket for that entry of getaddrinfo, as aiohttp's `socket_factory` makes them."""
    family, type_, protocol, *_ = address
    made = socket.socket(family, type_, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:  # no platform has all
            made.setsockopt(socket.IPPROTO_TCP, option, value)

    return made
