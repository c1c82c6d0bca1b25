"""Does TLS handshakes with API servers in threads, and less often where they take long.

What a handshake computes is up to the server: how many certificates it shows, of which keys, and on
which curves. OpenSSL takes it all in one call, seconds if the server likes, in which the event loop
would stand still; but it lets other threads run. So only the first message, which is ours, is made
in the event loop. asyncio is then given a connection whose handshake is done.

Servers whose last handshake was a usual one have threads of their own, so that none waits for what
is computed for others. A handshake that took long is followed by a pause that is a hundred times as
long.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from vnode.kube import tls_records
from vnode.kube.tls_records import BoundedRecords, RecordBudget

DEAR: Final = 0.05
"""Seconds of a processor; a handshake with a usual server takes one or two milliseconds."""
_PAUSE: Final = 100  # times as long as a handshake that was dear
_LONGEST: Final = 600.0  # seconds of a pause
_AT_ONCE: Final = 4  # steps of handshakes with a server whose last one was usual, and else one
_FOR_KNOWN: Final = 8  # threads for such servers
_FOR_UNKNOWN: Final = 2  # threads for others, however many there are

P = TypeVar("P", bound=asyncio.Protocol)

log = logging.getLogger(__name__)


class ServerPace:
    """Holds what the connections to one server share, and when the next handshake may begin.

    `name` is what logs call the server.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.records = RecordBudget()
        self._one, self._several = asyncio.Semaphore(1), asyncio.Semaphore(_AT_ONCE)
        self._is_known = False  # since the last handshake was done, and cost little
        self._not_before = 0.0  # monotonic

    async def step(self, handshake: _TlsHandshake) -> bool:
        """Do a step of a handshake in a thread; tell whether it is done. Raises as it does.

        A thread cannot be broken off: if this is cancelled, others wait for it all the same.
        """
        turns, threads = (
            (self._several, _of_known()) if self._is_known else (self._one, _of_unknown())
        )
        await turns.acquire()
        try:
            self.check()
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(threads, handshake.step)
        except BaseException:
            turns.release()
            raise

        running.add_done_callback(lambda step: self._end(step, handshake, turns))
        return await asyncio.shield(running)

    def check(self) -> None:
        """Raise ConnectionAbortedError while the next handshake has to wait."""
        left = self._not_before - time.monotonic()
        if left > 0:
            raise ConnectionAbortedError(
                errno.ECONNABORTED,
                f"handshakes with this server take long: the next one begins in {left:.0f} s",
            )

    def _end(
        self, step: asyncio.Future[bool], handshake: _TlsHandshake, turns: asyncio.Semaphore
    ) -> None:
        turns.release()
        if not step.cancelled() and step.exception() is None and step.result():
            self._is_known = True

        if handshake.cost > DEAR:
            self._is_known = False
            pause = min(handshake.cost * _PAUSE, _LONGEST)
            self._not_before = time.monotonic() + pause
            log.warning(
                "a TLS handshake with %s took %.2f s of a processor, so that the next one waits "
                "for %.0f s: look at the certificates that this server shows",
                self.name,
                handshake.cost,
                pause,
            )


async def connect(
    pace: ServerPace,
    protocol: Callable[[], P],
    context: ssl.SSLContext,
    server_hostname: str,
    opened: Callable[[Callable[[], Opening]], Awaitable[tuple[asyncio.Transport, Opening]]],
) -> tuple[asyncio.Transport, P]:
    """Connect by `opened`, and do the handshake; then make the protocol, as asyncio does.

    `opened` makes a connection without TLS, whose protocol it is given. Raises OSError, of which
    `ssl.SSLError` is a kind.
    """
    pace.check()
    transport, opening = await opened(Opening)
    try:
        finished = await opening.shake_hands(pace, context, server_hostname)
        made = protocol()
        token = _finished.set(finished)  # asyncio asks for it in a copy of this context
        try:
            secured = await asyncio.get_running_loop().start_tls(
                transport, made, _finished_context(), server_hostname=server_hostname
            )
        finally:
            _finished.reset(token)
    except BaseException:
        transport.abort()
        raise

    assert secured is not None, "connected"
    tls_records.keep_pace(secured, pace.records, pace.name)
    made.connection_made(secured)
    return secured, made


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
        self, pace: ServerPace, context: ssl.SSLContext, server_hostname: str
    ) -> _TlsHandshake:
        """Do the handshake, and return it."""
        handshake = _TlsHandshake(context, server_hostname, self._arrived)
        is_done = handshake.step()  # our own first message
        while not is_done:
            self.transport.write(handshake.outgoing.read())
            await self._news.wait()
            self._news.clear()
            if self._lost is not None and not self._arrived.pending:
                raise self._lost

            try:
                is_done = await pace.step(handshake)
            except ssl.SSLError:
                self.transport.write(handshake.outgoing.read())  # an alert
                raise

        if self._lost is not None:
            raise self._lost

        self.transport.write(handshake.outgoing.read())
        return handshake


class _TlsHandshake:
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


_finished: Final[ContextVar[_TlsHandshake]] = ContextVar("finished")


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


@functools.cache
def _of_known() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_FOR_KNOWN, "tls")


@functools.cache
def _of_unknown() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_FOR_UNKNOWN, "tls-first")
