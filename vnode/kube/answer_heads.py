"""Bounds the heads of answers and what frames their bodies, as `answer_limits` bounds these.

A server may send informational answers (1xx) before the one that counts, and aiohttp skips them
without counting: a hundred thousand in 4 MB keep the processor busy for seconds, for each request.
It may also go on with further answers that nobody asked for. So the bytes of a connection are
parsed in pieces, and after each one it is judged what came of it; the request fails with the first
piece that is out of bounds, and the connection is closed.

What frames a body has a bound, too, where objects are read, whole or as events: one that comes in
chunks of one byte costs a hundred times as much as in one. Logs have none, as each line may be a
chunk. All are read at a pace, besides: lines are counted, of which each chunk has two, on all
connections to a server together. What of a body comes to nothing at all, as members of gzip do that
are empty, never reaches who reads it, and is bounded here.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler

from vnode.api.token_bucket import TokenBucket
from vnode.kube.lookups import ThreadPerLookup
from vnode.kube.websocket_frames import EMPTY_FRAMES, CountedFrames, FrameLimit

MOST_INFORMATIONAL: Final = 8
"""Informational answers to one request; API servers send none, proxies perhaps a `100 Continue`."""
MOST_BYTES: Final = 64 * 1024
"""All heads of the answers to one request, trailers aside; Go's servers and clients allow 1 MiB,
and those of API servers have less than one KiB."""
MOST_FRAMING: Final = 256 * 1024
"""Bytes of a body on the wire beyond twice what it has: chunks of one byte take six. What a
decompressor has not passed on yet counts, some 64 KiB."""
MOST_TO_NOTHING: Final = 16
"""Bytes on the wire for each of a body, beyond as many as frame it: a chunk of one byte has six."""
LINES_PER_SECOND: Final = 40_000
"""Over time. A chunk takes a microsecond; 2,000 events a second have 4,000 lines."""
LINES_AT_ONCE: Final = 400_000  # a list of 128 MiB has 131,000
_PIECE: Final = 8 * 1024  # bytes; some two hundred of the shortest heads, a few milliseconds


class HeadOutOfBounds(aiohttp.ClientError):
    """A server that sends more before, or beside, its answer than any honest one does."""


def lines_of_a_server() -> TokenBucket:
    """Return the lines that may be read on all connections to one server."""
    return TokenBucket(LINES_PER_SECOND, LINES_AT_ONCE)


class BoundedHeads(ResponseHandler):
    """Reads the answers on one connection, one for each request.

    `lines` are those that may be read now, on all connections to the server. `frames` are those of
    a WebSocket, which its `limit` counts.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lines: TokenBucket,
        limit: FrameLimit = EMPTY_FRAMES,
        frames: TokenBucket | None = None,
    ) -> None:
        super().__init__(loop)
        self._lines = lines
        self._limit = limit
        self._frames = frames
        self._held: asyncio.TimerHandle | None = None  # until when nothing more is read
        self._restart()

    def _restart(self) -> None:
        self._informational = 0
        self._answers = 0  # that are the answer to the request, of which there is one
        self._head_size = 0  # bytes until that
        self._body_size = 0  # bytes on the wire after that

    def set_response_params(self, **params: Any) -> None:
        """Begin to wait for the answer to a request."""
        self._restart()
        super().set_response_params(**params)

    def set_parser(self, parser: Any, payload: Any, data_received_cb: Any = None) -> None:
        """Have the frames of a WebSocket counted, which begins now."""
        frames = self._frames or self._limit.bucket()
        counted = CountedFrames(parser, self._limit, frames, self._loop.time, self._break_off)
        super().set_parser(counted, payload, data_received_cb)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """Take the head of an answer that has been parsed."""
        code = data[0].code
        if code < 200 and code != 101:
            self._informational += 1
        else:
            self._answers += 1

        super().feed_data(data, size)

    def data_received(self, data: bytes) -> None:
        """Parse bytes until they are out of bounds.

        A parser that has paused, as decompression does, takes the rest at once, to keep it.
        """
        start = 0
        while start < len(data) or not start:
            end = len(data) if self._reading_paused else start + _PIECE
            piece, start = data[start:end], end
            awaits = not self._answers
            super().data_received(piece)
            if self._exception is not None:
                return

            self._count_lines(piece)
            if awaits and not self._answers:
                self._head_size += len(piece)
            elif not awaits:
                self._body_size += len(piece)

            if wrong := self._excess():
                self._give_up(wrong)
                return

            if not data:
                return

    def _count_lines(self, piece: bytes) -> None:
        left = self._lines.reserve(self._loop.time(), piece.count(b"\r\n"))
        if left > 0 and self._held is None:
            self._pause_transport_reading()
            self._held = self._loop.call_later(left, self._go_on)

    def _go_on(self) -> None:
        self._held = None
        if not (self._reading_paused or self._buffer_paused):
            self._resume_transport_reading()

    def _resume_transport_reading(self) -> None:
        """Read on, unless this has to wait for its lines: then that ends the pause."""
        if self._held is None:
            super()._resume_transport_reading()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget what the connection waits for."""
        if self._held is not None:
            self._held.cancel()

        super().connection_lost(exc)

    def set_exception(self, exc: Any, exc_cause: Any = None) -> None:
        """Fail the request; that the connection was then lost is no news."""
        if not isinstance(self._exception, HeadOutOfBounds):
            super().set_exception(exc, *(() if exc_cause is None else (exc_cause,)))

    @property
    def framing(self) -> int:
        """Bytes of the body on the wire beyond twice what has come of it."""
        if self._upgraded or not isinstance(self._payload, aiohttp.StreamReader):
            return 0

        return self._body_size - 2 * self._payload.total_bytes

    def _excess(self) -> str:
        if self._informational > MOST_INFORMATIONAL:
            return f"the server sent more than {MOST_INFORMATIONAL} informational answers (1xx)"

        if self._head_size > MOST_BYTES:
            return f"the head of the answer has more than {MOST_BYTES} bytes"

        if self._answers > 1:
            return "the server sent more than one answer"

        return "the body of the answer is mostly what frames it" if self._comes_to_nothing else ""

    @property
    def _comes_to_nothing(self) -> bool:
        if self._upgraded or not isinstance(self._payload, aiohttp.StreamReader):
            return False

        most = MOST_TO_NOTHING * self._payload.total_bytes + MOST_FRAMING
        return self._body_size > most

    def _give_up(self, wrong: str) -> None:
        """Fail the request; what was read of its answers is dropped, and nothing more is read."""
        error = HeadOutOfBounds(wrong)
        self._buffer.clear()
        if isinstance(self._payload, aiohttp.StreamReader) and not self._payload.is_eof():
            self._payload.set_exception(error)

        self.set_exception(error)
        self._break_off()

    def _break_off(self) -> None:
        if self.transport is not None:
            self.transport.abort()


def refuse_framing(response: aiohttp.ClientResponse) -> None:
    """Raise HeadOutOfBounds if the body, as far as it was read, is mostly what frames it."""
    connection = response.connection  # None once all was read
    if connection is None or not isinstance(connection.protocol, BoundedHeads):
        return

    if connection.protocol.framing > MOST_FRAMING:
        raise HeadOutOfBounds("the answer comes in chunks of next to nothing")


class BoundedConnector(aiohttp.TCPConnector):
    """Makes connections on which heads are bounded, and lines of all of them.

    `lines` are those that all connections to the server may have, if there are others. So are
    `frames`, which `frame_limit` counts.
    """

    def __init__(
        self,
        *,
        lines: TokenBucket | None = None,
        frame_limit: FrameLimit = EMPTY_FRAMES,
        frames: TokenBucket | None = None,
        **options: Any,
    ) -> None:
        super().__init__(resolver=ThreadPerLookup(), **options)
        factory: Any = functools.partial(
            BoundedHeads,
            loop=self._loop,
            lines=lines or lines_of_a_server(),
            limit=frame_limit,
            frames=frames,
        )
        self._factory = factory
