"""Bounds what TLS records cost, beside what is in them.

All limits further up count what was decrypted. A record takes some 30 µs whatever it carries: one
byte, or nothing but a change of keys, so that a megabyte a second keeps a core busy and nobody
hears of it; and asyncio has all that arrived at once decrypted in one callback. So the bytes of a
connection are given to TLS some records at a time. What they had beyond what came of them has to be
had of a budget, which the connections of a peer share; for an honest one that is next to nothing,
as full records have a seven-hundredth. Whoever is beyond it waits. Of an API server that passes on
what its users send, each of these has a budget once it is known whose stream a connection is.

A handshake has a number of bytes, at most, until it is done.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Protocol

from vnode.api.token_bucket import TokenBucket, TokenBuckets

PER_SECOND: Final = 32 * 1024
"""Bytes of a budget over time: 1,500 records a second without anything in them."""
AT_ONCE: Final = 128 * 1024
_FREE: Final = 32  # of so many bytes that were decrypted, one more on the wire costs nothing
IN_A_HANDSHAKE: Final = 24 * 1024
"""Bytes; chains of servers have 2 to 6 KiB, and the names of authorities as much again."""

_HEADER: Final = 5  # bytes of a record: type, version, length
_RECORDS: Final = 64  # given to TLS at once
_PIECE: Final = 64 * 1024  # bytes given to TLS at once
_STEP: Final = 4 * 1024  # the same, in a handshake
_PASS: Final = 2 * 1024  # bytes in vain in one callback, some 90 records
_AT_THE_END: Final = 16 * 1024  # bytes in vain, of what came before the peer closed
_WASTE: Final = (
    1024 * 1024
)  # bytes in vain until a connection is closed whose peer does nothing else
_WASTE_PER_SECOND: Final = 4 * 1024  # that are forgiven: a key that is pressed has 20
_FUTILE: Final = (
    4  # times as many bytes in vain as others are nothing else; a short chunk has 6 bytes
)

log = logging.getLogger(__name__)


class RecordBudget(TokenBucket):
    """Holds the bytes that records may have in vain on the connections of one peer."""

    def __init__(self) -> None:
        super().__init__(PER_SECOND, AT_ONCE)


class RecordBudgets:
    """Has a budget for each of many who all come from one address, as through an API server."""

    def __init__(self) -> None:
        self._buckets: TokenBuckets[str] = TokenBuckets(AT_ONCE)

    def of(self, whose: str) -> SpentBytes:
        """Return the budget that all connections of one of them share, however long they last."""
        return _OwnBudget(self._buckets, whose)


class SpentBytes(Protocol):
    """Takes account of bytes in vain."""

    def reserve(self, now: float, tokens: float) -> float:
        """Take so many bytes; return the seconds until they are there."""


@dataclass(frozen=True, slots=True)
class _OwnBudget:
    buckets: TokenBuckets[str]
    whose: str

    def reserve(self, now: float, tokens: float) -> float:
        return self.buckets.of(self.whose, PER_SECOND, now).reserve(now, tokens)


class BoundedRecords:
    """Stands between asyncio and the TLS object of one connection; asyncio calls it instead.

    `tls`, an `ssl.SSLObject` or what has its methods, reads from `fed` what asyncio has put into
    `arrived`.
    """

    def __init__(self, tls: Any, fed: ssl.MemoryBIO, arrived: ssl.MemoryBIO) -> None:
        self.tls = tls
        self._fed = fed
        self._arrived = arrived
        self._rest: memoryview = memoryview(b"")  # taken from `arrived`, not given to TLS yet
        self._dry = True  # whether TLS has read all that it was given
        self._left = 0  # bytes of a record whose first ones were given to TLS
        self._begun = 0  # of those, the ones that were given
        self._given = 0  # bytes given to TLS, of records that are not settled
        self._decrypted = 0  # bytes that came of them
        self._vain = 0  # bytes in vain in this pass
        self._resting = False
        self._peer = ""
        self._transport: asyncio.Transport | None = None  # None: no pace yet
        self._budget: SpentBytes = RecordBudget()
        self._waste = TokenBucket(_WASTE_PER_SECOND, _WASTE)

    def keep_pace(self, transport: asyncio.Transport, budget: SpentBytes, peer: str) -> None:
        """Have what comes from now on wait for `budget`; logs call the other side `peer`."""
        self._transport, self._budget, self._peer = transport, budget, peer

    def do_handshake(self) -> None:
        """Continue the handshake; SSLError once it has taken too many bytes."""
        if self._dry:
            self._give(_STEP)

        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self._dry = True
                if self._given > IN_A_HANDSHAKE:
                    raise ssl.SSLError(
                        ssl.SSL_ERROR_SSL, f"the handshake has more than {IN_A_HANDSHAKE} bytes"
                    ) from None

                if not self._give(_STEP):
                    raise
            else:
                self._given = self._begun
                return

    def read(self, size: int = 16 * 1024, buffer: Any = None) -> Any:
        """Return what was received, or its length if it is in `buffer`; nothing at its end."""
        if self._resting and not self._has_ended:
            raise ssl.SSLWantReadError

        if self._dry:
            self._give(_PIECE)

        while True:
            try:
                received = self.tls.read(size) if buffer is None else self.tls.read(size, buffer)
            except ssl.SSLWantReadError:
                self._dry = True
                if self._settle():
                    raise

                if not self._give(_PIECE):
                    self._vain = 0  # that was all, so the pass is over
                    raise
            else:
                self._decrypted += len(received) if buffer is None else received
                return received

    def write(self, data: Any) -> int:
        """Encrypt bytes."""
        written: int = self.tls.write(data)
        return written

    def unwrap(self) -> Any:
        """Send the end, and wait for the peer's."""
        if self._dry:
            self._give(_PIECE)

        return self.tls.unwrap()

    def getpeercert(self, binary_form: bool = False) -> Any:
        """Return the peer's certificate as `ssl` does."""
        return self.tls.getpeercert(binary_form)

    def cipher(self) -> Any:
        """Return name, protocol and bits of the cipher."""
        return self.tls.cipher()

    def compression(self) -> Any:
        """Return the algorithm of compression."""
        return self.tls.compression()

    def _give(self, most: int) -> bool:
        """Give TLS some records, or parts of them; tell whether there were any."""
        if len(self._rest) < _HEADER and self._arrived.pending:
            self._rest = memoryview(bytes(self._rest) + self._arrived.read(_PIECE))

        end = self._end_of_records(min(most, len(self._rest)))
        if not end:
            return False

        self._fed.write(self._rest[:end])
        self._given += end
        self._rest = self._rest[end:]
        self._dry = False
        return True

    def _end_of_records(self, most: int) -> int:
        """Return where the next records end, or what there is of the last one."""
        end = 0
        for _ in range(_RECORDS):
            if not self._left:
                if end + _HEADER > most:
                    break

                length = int.from_bytes(self._rest[end + 3 : end + _HEADER], "big")
                self._left, self._begun = _HEADER + length, 0

            part = min(self._left, most - end)
            self._left -= part
            self._begun = self._begun + part if self._left else 0
            end += part
            if self._left:
                break

        return end

    def _settle(self) -> bool:
        """Take from the budget what records that TLS has read had in vain; tell whether to rest."""
        done, decrypted = self._given - self._begun, self._decrypted
        self._given, self._decrypted = self._begun, 0
        vain = done - decrypted - decrypted // _FREE
        if vain <= 0 or self._transport is None:
            return False

        self._vain += vain
        loop = asyncio.get_running_loop()
        wait = self._budget.reserve(loop.time(), vain)
        if done > (_FUTILE + 1) * decrypted and self._waste.reserve(loop.time(), vain) > 0:
            self._give_up("sends next to nothing but TLS records")

        if self._has_ended:
            if self._vain > _AT_THE_END:
                self._give_up("has left too many TLS records with next to nothing in them")

            return False

        if wait <= 0 and self._vain <= _PASS:
            return False

        self._resting = True
        loop.call_later(wait, self._go_on)
        return True

    def _give_up(self, reason: str) -> NoReturn:
        """End the connection: asyncio closes it at any other error of TLS."""
        log.warning("a connection is closed: %s %s", self._peer, reason)
        raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"the peer {reason}")

    @property
    def _has_ended(self) -> bool:
        """Whether the peer has closed the socket: asyncio then reads once more, and closes, too."""
        protocol = getattr(self._transport, "_ssl_protocol", None)
        return bool(getattr(protocol, "_eof_received", False))

    def _go_on(self) -> None:
        """Have asyncio read on, unless the connection is closed, or nobody wants to read."""
        self._resting, self._vain = False, 0
        transport = self._transport
        if transport is not None and not transport.is_closing() and transport.is_reading():
            transport.pause_reading()
            transport.resume_reading()


def keep_pace(transport: asyncio.BaseTransport, budget: SpentBytes, peer: str) -> None:
    """Have the records of a connection wait for a budget, if they are TLS and of our contexts."""
    tls = transport.get_extra_info("ssl_object")
    if isinstance(tls, BoundedRecords):
        assert isinstance(transport, asyncio.Transport), "a connection, which reads and writes"
        tls.keep_pace(transport, budget, peer)


class BoundedContext(ssl.SSLContext):
    """Makes connections with bounded records. Subclasses make the TLS object in `secure`."""

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> Any:
        """Make the TLS object of one connection; asyncio calls this."""
        fed = ssl.MemoryBIO()
        tls = self.secure(fed, outgoing, server_side, server_hostname)
        return BoundedRecords(tls, fed, incoming)

    def secure(
        self,
        fed: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool,
        server_hostname: str | bytes | None,
    ) -> Any:
        """Make the object that decrypts what it is fed."""
        return super().wrap_bio(fed, outgoing, server_side, server_hostname)
