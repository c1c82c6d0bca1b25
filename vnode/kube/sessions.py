"""Holds the connections to one address of an API server.

Short requests share a bounded pool, so that a burst takes few TLS handshakes; watches and streams
have connections of their own, and so have leases. A client that moves to another address leaves
sessions behind in which requests and streams of users may still be under way; watches end, since
they can resume anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import aiohttp

from vnode import __version__
from vnode.api.token_bucket import TokenBucket
from vnode.kube import answer_heads, pace, sockets, urgency
from vnode.kube.answer_heads import BoundedConnector
from vnode.kube.endpoint import Endpoint

_SPARE: Final = 4  # connections for what is sent while as many requests are under way as may be
_POOL: Final = pace.MOST + _SPARE  # connections for short requests
_URGENT: Final = 4  # connections of their own for leases, which must not wait behind a burst


class Sessions:
    """Keeps the connections to the server of an endpoint until `aclose`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.lines = answer_heads.lines_of_a_server()
        self._short = _session(endpoint, _POOL, self.lines)
        self._urgent = _session(endpoint, _URGENT, self.lines)
        self.long = _session(endpoint, 0, self.lines)
        self._streams: set[aiohttp.ClientResponse] = set()  # that are being read
        self._watches: set[aiohttp.ClientResponse] = set()  # those of them that can resume
        self._requests = 0  # under way, and streams that have not begun

    def short(self, path: str) -> aiohttp.ClientSession:
        """Return the session for a short request to that path."""
        return self._urgent if path.startswith(urgency.LEASES) else self._short

    @property
    def is_used(self) -> bool:
        """Whether a request or a stream is under way."""
        return bool(self._requests or self._streams)

    @contextmanager
    def requesting(self) -> Iterator[None]:
        """Count a request as under way."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1

    @contextmanager
    def reading(self, response: aiohttp.ClientResponse, *, is_watch: bool) -> Iterator[None]:
        """Register a stream while it is read."""
        self._streams.add(response)
        if is_watch:
            self._watches.add(response)

        try:
            yield
        finally:
            self._streams.discard(response)
            self._watches.discard(response)

    def reads(self, response: aiohttp.ClientResponse) -> bool:
        """Tell whether a stream is being read here."""
        return response in self._streams

    def end_watches(self) -> None:
        """Break the watches off; their readers get an error, as if the connection had broken."""
        for response in list(self._watches):
            response.close()

    async def aclose(self) -> None:
        """Close all connections, even if cancelled meanwhile; running requests fail."""
        for response in list(self._streams):
            response.close()  # a session that is closed does not wake those who read from it

        async with AsyncExitStack() as stack:
            for session in (self._short, self.long, self._urgent):
                stack.push_async_callback(session.close)


def _session(endpoint: Endpoint, limit: int, lines: TokenBucket) -> aiohttp.ClientSession:
    connector = BoundedConnector(
        lines=lines,
        limit=limit,
        ssl=endpoint.ssl or False,
        keepalive_timeout=60,
        socket_factory=sockets.create,
    )
    # API servers compress by gzip only. A page shrinks to a tenth; unfolding it costs the same
    # with or without our asking, since any server may compress its answer.
    return aiohttp.ClientSession(
        connector=connector,
        headers={"User-Agent": f"vnode/{__version__}", "Accept-Encoding": "gzip"},
        auto_decompress=True,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
