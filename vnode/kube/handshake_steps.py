"""Takes a TLS handshake as far as asyncio can go on with the connection.

asyncio would do all steps of a handshake in the event loop. Here who connects says where they are
done (`vnode.kube.handshakes`: in threads). Then asyncio is told to begin TLS on the connection, by
a context that gives it the TLS object whose handshake is done.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import ssl
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Final

from vnode.kube import tls_records
from vnode.kube.tls_records import BoundedRecords


class Opening(asyncio.Protocol):
    """Keeps what arrives until the handshake is done."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._arrived = ssl.MemoryBIO()
        self._news = asyncio.Event()  # set by bytes and by the end
        self._lost: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Keep bytes, up to a limit: a handshake has fewer."""
        self._arrived.write(data)
        if self._arrived.pending > tls_records.IN_A_HANDSHAKE:
            self.transport.pause_reading()

        self._news.set()

    def eof_received(self) -> None:
        """Note the end."""
        self._lose(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end."""
        self._lose(exc)

    def _lose(self, error: Exception | None) -> None:
        self._lost = (
            self._lost
            or error
            or ConnectionResetError(errno.ECONNRESET, "closed in the TLS handshake")
        )
        self._news.set()

    async def shake_hands(
        self,
        step: Callable[[Handshake], Awaitable[bool]],
        context: ssl.SSLContext,
        server_hostname: str,
    ) -> Handshake:
        """Do the handshake, by steps that tell whether it is done, and return it."""
        handshake = Handshake(context, server_hostname, self._arrived)
        is_done = handshake.step()  # our own first message
        while not is_done:
            self.transport.write(handshake.outgoing.read())
            await self._news.wait()
            self._news.clear()
            if self._lost is not None and not self._arrived.pending:
                raise self._lost

            try:
                is_done = await step(handshake)
            except ssl.SSLError:
                self.transport.write(handshake.outgoing.read())  # an alert
                raise

        if self._lost is not None:
            raise self._lost

        self.transport.write(handshake.outgoing.read())
        return handshake


class Handshake:
    """The TLS object of one connection, until asyncio has it."""

    def __init__(
        self, context: ssl.SSLContext, server_hostname: str, arrived: ssl.MemoryBIO
    ) -> None:
        fed, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._arrived = arrived
        tls = context.wrap_bio(fed, self.outgoing, server_hostname=server_hostname)
        self._records = BoundedRecords(tls, fed, arrived)
        self.cost = 0.0  # seconds of a processor

    def step(self) -> bool:
        """Compute as far as what has arrived goes; tell whether the handshake is done."""
        began = time.thread_time()
        try:
            self._records.do_handshake()
        except ssl.SSLWantReadError:
            return False
        finally:
            self.cost += time.thread_time() - began

        return True

    def give_away(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> BoundedRecords:
        """Have the TLS object read and write what asyncio does, beginning with what is left."""
        incoming.write(self._arrived.read())
        self._records.continue_with(
            _Forwarding(self._records.tls, self.outgoing, outgoing), incoming
        )
        return self._records


class _Forwarding:
    """A TLS object that writes to `outgoing` what it was made to write elsewhere."""

    def __init__(self, tls: Any, written: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._tls = tls
        self._written = written
        self._outgoing = outgoing
        self.getpeercert, self.cipher, self.compression = (
            tls.getpeercert,
            tls.cipher,
            tls.compression,
        )

    def do_handshake(self) -> None:
        """Do nothing: it is done."""

    def read(self, size: int = 16 * 1024, buffer: Any = None) -> Any:
        """Return what was received, as `ssl` does."""
        try:
            return self._tls.read(size) if buffer is None else self._tls.read(size, buffer)
        finally:
            self._forward()

    def write(self, data: Any) -> int:
        """Encrypt bytes."""
        written: int = self._tls.write(data)
        self._forward()
        return written

    def unwrap(self) -> Any:
        """Send the end, and wait for the peer's."""
        try:
            return self._tls.unwrap()
        finally:
            self._forward()

    def _forward(self) -> None:
        if self._written.pending:
            self._outgoing.write(self._written.read())


_finished: Final[ContextVar[Handshake]] = ContextVar("finished")


class _FinishedContext(ssl.SSLContext):
    """Gives asyncio the TLS object of a handshake that is done."""

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *_args: Any, **_options: Any
    ) -> Any:
        """Return that object; asyncio calls this."""
        return _finished.get().give_away(incoming, outgoing)


@functools.cache
def _finished_context() -> ssl.SSLContext:
    return _FinishedContext(ssl.PROTOCOL_TLS_CLIENT)


async def go_on(
    transport: asyncio.Transport,
    handshake: Handshake,
    protocol: asyncio.Protocol,
    server_hostname: str,
) -> asyncio.Transport:
    """Have asyncio go on with a connection whose handshake is done; return its transport of TLS."""
    token = _finished.set(handshake)  # asyncio asks for it in a copy of this context
    try:
        secured = await asyncio.get_running_loop().start_tls(
            transport, protocol, _finished_context(), server_hostname=server_hostname
        )
    finally:
        _finished.reset(token)

    assert secured is not None, "connected"
    return secured
