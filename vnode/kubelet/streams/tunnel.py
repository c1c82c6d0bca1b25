"""Copies bytes from one connection to another and back, until both have ended.

Each connection gets a protocol that writes what it receives to the other transport: no tasks, no
buffers of our own. A transport that cannot take more pauses reading at the other, so that memory
stays flat; silence is not limited. A namespace that sends too much is read more slowly (`pace`).

asyncio's TLS has no half-open connections (a close_notify ends both directions once buffers are
flushed), so over TLS the end of one connection ends the other. Towards the client everything that
the target sent is delivered first, however slow the client is; towards the target there are a few
seconds, because a client that is gone must not leave a process behind. Over plain TCP, a half-close
is passed on as one.
"""

from __future__ import annotations

import asyncio
from typing import Final

from vnode.api.durations import TICK
from vnode.kubelet.stream_openings import BUFFER
from vnode.kubelet.streams.disconnects import DisconnectWatch
from vnode.kubelet.streams.pace import Pace
from vnode.runtime import memory

_FLUSH: Final = 3.0  # seconds to flush towards the target once the client is gone


class Tunnel:
    """Joins two transports; `closed` is set when both are gone."""

    def __init__(
        self,
        client: asyncio.Transport,
        target: asyncio.Transport,
        disconnects: DisconnectWatch,
        pace: Pace,
        buffered: int = BUFFER,
    ) -> None:
        self.closed = asyncio.Event()
        self.pace = pace
        self._buffered = buffered  # bytes in a transport before its source is paused
        self._disconnects = disconnects
        # The client's socket if a disconnect ends both directions (TLS), else -1.
        connection = None if client.can_write_eof() else client.get_extra_info("socket")
        self._descriptor: int = -1 if connection is None else connection.fileno()
        self.client = TunnelEnd(self, client)
        self.target = TunnelEnd(self, target)
        self.client.other, self.target.other = self.target, self.client

    def start(self) -> None:
        """Replace the protocols of both transports, and start copying."""
        for end in (self.client, self.target):
            memory.enlarge_buffer(end.transport)
            end.transport.set_write_buffer_limits(high=self._buffered)
            end.transport.set_protocol(end)

        for end in (self.client, self.target):
            end.transport.resume_reading()

    def close(self) -> None:
        """End both connections now; buffered bytes have a few seconds to be sent."""
        for end in (self.client, self.target):
            end.close_within(_FLUSH)

    def blocked(self, end: TunnelEnd) -> None:
        """Stop reading at the other end, because `end` takes no more."""
        end.other.block()
        if end is self.target:
            self._disconnects.watch(self._descriptor, self._client_gone)

    def unblocked(self, end: TunnelEnd) -> None:
        """Resume reading at the other end, because `end` has room again."""
        if end is self.target:
            self._disconnects.forget(self._descriptor, self._client_gone)

        end.other.unblock()

    def lost(self, end: TunnelEnd) -> None:
        """End the other connection, because that of `end` is gone."""
        if end is self.client:
            self._disconnects.forget(self._descriptor, self._client_gone)
            self.target.close_within(_FLUSH)
        else:
            self.client.close_when_flushed()

        if self.client.gone and self.target.gone:
            self.closed.set()

    def _client_gone(self) -> None:
        """Abort both connections: the client is gone, and the target does not take its input."""
        self.client.transport.abort()
        self.target.transport.abort()


class TunnelEnd(asyncio.Protocol):
    """Writes what one of the two connections receives to the other."""

    other: TunnelEnd

    def __init__(self, tunnel: Tunnel, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.gone = False
        self._ended = False  # the peer has sent all that it will, over plain TCP
        self._tunnel = tunnel
        self._closing = False  # close as soon as the write buffer is empty
        self._abort: asyncio.TimerHandle | None = None
        # Why nothing is read: the other end takes no more, or too much was read.
        self._blocked = False
        self._paused: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        """Write the data to the other end."""
        if not self.other.transport.is_closing():
            self.other.transport.write(data)

        wait = self._tunnel.pace(len(data))
        if wait > TICK and self._paused is None and not self.gone:
            self.transport.pause_reading()
            self._paused = asyncio.get_running_loop().call_later(wait, self._go_on)

    def block(self) -> None:
        """Read no more until `unblock`."""
        self._blocked = True
        self.transport.pause_reading()

    def unblock(self) -> None:
        """Read on, or once that is due."""
        self._blocked = False
        if self._paused is None:
            self.transport.resume_reading()

    def eof_received(self) -> bool:
        """Pass a half-close on where both transports can; TLS closes by itself."""
        if not self.transport.can_write_eof() or not self.other.transport.can_write_eof():
            return False

        self._ended = True
        if not self.other.transport.is_closing():
            self.other.transport.write_eof()

        return not self.other._ended  # once both have ended, both close

    def pause_writing(self) -> None:
        """Stop the other end while the buffer of this transport is full."""
        if not self._closing:
            self._tunnel.blocked(self)

    def resume_writing(self) -> None:
        """Resume the other end, or close if that waited for the buffer to be empty."""
        if self._closing:
            self._close()
        else:
            self._tunnel.unblocked(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Notify the tunnel."""
        self.gone = True
        for timer in (self._abort, self._paused):
            if timer is not None:
                timer.cancel()

        self._tunnel.lost(self)

    def close_within(self, seconds: float) -> None:
        """Close now; bytes that cannot be sent within `seconds` are dropped."""
        if not self.gone and self._abort is None:
            loop = asyncio.get_running_loop()
            self._abort = loop.call_later(seconds, self.transport.abort)
            self._close()

    def close_when_flushed(self) -> None:
        """Close once the peer has taken all buffered bytes, however long that takes."""
        if self.gone or self._closing or self.transport.is_closing():
            return

        self._closing = True
        if not self.transport.get_write_buffer_size():
            self._close()
        else:
            self.transport.set_write_buffer_limits(high=0)

    def _go_on(self) -> None:
        """Read on, unless the other end takes no more."""
        self._paused = None
        if not self._blocked:
            self.transport.resume_reading()

    def _close(self) -> None:
        """Close only once: a TLS transport that is closed twice drops its connection too early."""
        if not self.transport.is_closing():
            self.transport.close()
