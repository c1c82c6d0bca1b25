"""Makes sockets with TCP keepalive, so that a silent loss of the connection is noticed.

A NAT gateway, a firewall or a load balancer may forget a connection without telling either side.
A side that only listens, as a watch does, would then wait in vain. So the kernel sends probes when
nothing has arrived for a while.
"""

from __future__ import annotations

import socket
from typing import Any, Final

IDLE: Final = 15  # seconds without a byte until the first probe
INTERVAL: Final = 5  # seconds between probes
PROBES: Final = 3  # without an answer, until the connection is given up

LOST_AFTER: Final = IDLE + INTERVAL * PROBES
"""Seconds after which a connection to a peer that is gone breaks."""

_OPTIONS: Final = (
    ("TCP_KEEPIDLE", IDLE),
    ("TCP_KEEPALIVE", IDLE),  # as macOS calls it
    ("TCP_KEEPINTVL", INTERVAL),
    ("TCP_KEEPCNT", PROBES),
    ("TCP_USER_TIMEOUT", LOST_AFTER * 1000),  # for bytes that are not acknowledged
)


def create(address: tuple[Any, ...]) -> socket.socket:
    """Make a socket for an entry of getaddrinfo; this is a `socket_factory` of aiohttp."""
    family, type_, protocol, *_ = address
    created = socket.socket(family, type_, protocol)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        option = getattr(socket, name, None)
        if option is not None:  # no platform has all
            created.setsockopt(socket.IPPROTO_TCP, option, value)

    return created
