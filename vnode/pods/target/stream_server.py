"""Serves the streams of sources: a WebSocket for each, through this cluster's API server.

That removes whatever said who the caller is. So a source says a secret first, whose digest its
chaperons here have, and until then its connection counts among those of strangers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from aiohttp import web

from vnode.kube import tls_records
from vnode.kube.served_websockets import CountedWebSocket
from vnode.kube.tls_records import RecordBudgets
from vnode.pods import stream_messages
from vnode.pods.stream_channel import FRAMES, Channel, WebSocketChannel, receive_all, sending
from vnode.pods.stream_messages import Hello, PermissionNews, ReservationNews, StreamEnded, Welcome
from vnode.pods.streams import SourceStreams
from vnode.runtime.applications import application

_FIRST: Final = 10.0  # seconds until a source has said who it is
_HEARTBEAT: Final = 20.0  # seconds of silence after which a ping is sent

log = logging.getLogger(__name__)


async def serve(
    streams: SourceStreams, channel: Channel, replica: str, on_known: Callable[[str], None]
) -> None:
    """Answer a source until its stream ends, by StreamEnded.

    `on_known` is called with the digest of its secret once it has said who it is.
    """
    try:
        async with asyncio.timeout(_FIRST):
            hello = stream_messages.decode(Hello, await channel.receive())
    except TimeoutError:
        raise StreamEnded("the source did not say who it is") from None

    digest = stream_messages.digest(hello.secret)
    if not streams.knows(digest):
        raise StreamEnded("the source has no PodChaperon here")

    on_known(digest)
    with streams.open(digest) as stream:
        await channel.send(stream_messages.encode(Welcome(replica)))

        def handle(text: str) -> None:
            news = stream_messages.decode(PermissionNews, text)
            streams.acknowledge(digest, stream, news.acknowledged)
            streams.allow(digest, news.allowed)

        async with sending(channel, stream.outbox, ReservationNews):
            await receive_all(channel, handle, stream.attention)


class StreamPages:
    """Makes the application of a replica's server, which is to tell whose caller is known."""

    def __init__(self, streams: SourceStreams, replica: str) -> None:
        self._streams = streams
        self._replica = replica
        # By digest: the streams of all sources come from the API server's address.
        self._records = RecordBudgets()
        self._sockets: set[web.WebSocketResponse] = set()
        self.on_known: Callable[[web.Request], None] = lambda _request: None

    def app(self) -> web.Application:
        """Return the application."""
        app = application(client_max_size=1024)
        app.router.add_get(stream_messages.PATH, self._stream)
        app.on_shutdown.append(self._end)
        return app

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        socket = CountedWebSocket(
            FRAMES,
            protocols=(stream_messages.PROTOCOL,),
            heartbeat=_HEARTBEAT,
            max_msg_size=stream_messages.LARGEST,
        )
        await socket.prepare(request)
        self._sockets.add(socket)
        channel = WebSocketChannel(socket)

        def known(digest: str) -> None:
            self.on_known(request)
            if (transport := request.transport) is not None:
                tls_records.keep_pace(transport, self._records.of(digest), "a source")

        try:
            await serve(self._streams, channel, self._replica, known)
        except StreamEnded as end:
            log.debug("a stream of a source ends: %s", end)
        finally:
            self._sockets.discard(socket)
            await socket.close()

        return socket

    async def _end(self, _app: web.Application) -> None:
        for socket in list(self._sockets):
            await socket.close()
