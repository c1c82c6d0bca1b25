"""Implements TLS for a server that requests a client certificate and accepts any, unverified.

A kubelet does so: a caller with a certificate of a wrong CA is answered 401, and a token beside it
still counts. Python's `ssl` cannot: it always ends the handshake of a certificate that it does not
trust. So these connections use pyOpenSSL's TLS, which leaves the choice, behind the interface by
which asyncio uses `ssl`.

The handshake proves only that the peer has the key of its certificate. At each request
`vnode.kubelet.auth.client_certificates` decides whether to trust the certificate.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from OpenSSL import SSL

from vnode.api.errors import ConfigError
from vnode.runtime.certs.keypairs import Pair

_RECORD: Final = 16 * 1024  # bytes: the maximum of a TLS record
_DRAIN: Final = 96 * 1024  # bytes; above 128 KiB malloc gets memory from the kernel each time
_HTTP: Final = b"http/1.1"

T = TypeVar("T")


class OptionalClientCertContext(ssl.SSLContext):
    """Serves with a certificate. Sessions are not resumed: every peer has to prove its key.

    ConfigError if the pair cannot be used.
    """

    _openssl: SSL.Context

    def __new__(cls, _pair: Pair) -> OptionalClientCertContext:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, pair: Pair) -> None:
        self._openssl = _context_of(pair)

    def set_certificate(self, pair: Pair) -> None:
        """Use this certificate from the next connection on; ConfigError leaves the former one."""
        self._openssl = _context_of(pair)

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> Any:
        """Make the TLS object of one connection; asyncio calls this."""
        assert server_side, "a context for servers"
        return _Peer(SSL.Connection(self._openssl), incoming, outgoing)


def _context_of(pair: Pair) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_alpn_select_callback(_select)
    context.set_verify(SSL.VERIFY_PEER, _accept_any)
    try:
        first, *others = x509.load_pem_x509_certificates(pair.certificate)
        context.use_certificate(first)
        for issuer in others:
            context.add_extra_chain_cert(issuer)

        key: Any = serialization.load_pem_private_key(pair.key, password=None)
        context.use_privatekey(key)
        context.check_privatekey()
    except (ValueError, TypeError, SSL.Error) as error:
        raise ConfigError(f"not a certificate and its private key: {error}") from error

    return context


def peer_certificates(request: web.Request) -> Sequence[x509.Certificate]:
    """Return the caller's certificate, then its issuers as far as it sent them; not verified yet.

    Empty without a certificate, with one that cannot be decoded, and once the caller is gone.
    """
    peer = request.get_extra_info("ssl_object")
    try:
        return peer.certificates() if isinstance(peer, _Peer) else ()
    except ValueError:
        return ()


class _Peer:
    """Implements, for one connection, what asyncio uses of `ssl.SSLObject`; keeps certificates."""

    def __init__(
        self, connection: SSL.Connection, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        self._connection = connection
        self._incoming = incoming
        self._outgoing = outgoing
        connection.set_accept_state()

    def do_handshake(self) -> None:
        """Continue the handshake."""
        self._call(self._connection.do_handshake)

    def read(self, size: int = _RECORD, buffer: Any = None) -> bytes | int:
        """Return received bytes, or how many were put into the buffer; nothing at the peer's end.

        Answers of TLS itself are sent when there is nothing more to read.
        """
        try:
            return self._call(lambda: self._receive(min(size, _RECORD), buffer), drain=False)
        except ssl.SSLZeroReturnError:
            return b"" if buffer is None else 0

    def _receive(self, size: int, buffer: Any) -> bytes | int:
        if buffer is None:
            return self._connection.recv(size)

        return self._connection.recv_into(buffer, size)

    def write(self, data: Any) -> int:
        """Encrypt all of the bytes into memory, so that this never blocks."""
        return self._call(lambda: self._send(data))

    def _send(self, data: Any) -> int:
        """Encrypt record by record, to be drained at once: each drain costs as much as a record."""
        if len(data) <= _RECORD:
            return self._connection.send(data)

        view = memoryview(data)
        return sum(
            self._connection.send(view[start : start + _RECORD])
            for start in range(0, len(view), _RECORD)
        )

    def unwrap(self) -> None:
        """Send close_notify and wait for the peer's."""
        if not self._call(self._connection.shutdown):
            raise ssl.SSLWantReadError

    def certificates(self) -> Sequence[x509.Certificate]:
        """Return what `peer_certificates` does. ValueError for one that cannot be decoded."""
        leaf = self._connection.get_peer_certificate(as_cryptography=True)
        if leaf is None:
            return ()

        chain = self._connection.get_peer_cert_chain(as_cryptography=True) or ()
        return (leaf, *(issuer for issuer in chain if issuer != leaf))

    def getpeercert(self, binary_form: bool = False) -> None:
        """Return None: a certificate that is not verified proves nothing."""

    def cipher(self) -> tuple[str | None, str | None, int | None]:
        """Return name, protocol and bits of the cipher."""
        peer = self._connection
        return peer.get_cipher_name(), peer.get_cipher_version(), peer.get_cipher_bits()

    def compression(self) -> None:
        """Return None: compression is off."""

    def _call(self, step: Callable[[], T], *, drain: bool = True) -> T:
        """Feed in received bytes, run a step, drain its output; errors become those of `ssl`."""
        if self._incoming.pending:
            self._feed(self._incoming.read())

        try:
            result = step()
        except SSL.Error as error:
            self._drain()
            raise _to_ssl_error(error) from error

        if drain:
            self._drain()

        return result

    def _feed(self, arrived: bytes) -> None:
        taken = 0
        while taken < len(arrived):
            taken += self._connection.bio_write(arrived[taken:] if taken else arrived)

    def _drain(self) -> None:
        while True:
            try:
                self._outgoing.write(self._connection.bio_read(_DRAIN))
            except SSL.WantReadError:
                return


def _to_ssl_error(error: SSL.Error) -> ssl.SSLError:
    if isinstance(error, SSL.WantReadError):
        return ssl.SSLWantReadError()

    if isinstance(error, SSL.ZeroReturnError):
        return ssl.SSLZeroReturnError()

    return ssl.SSLError(f"TLS: {error}")


def _accept_any(_connection: Any, _certificate: Any, _error: int, _depth: int, _ok: int) -> bool:
    """Accept any certificate: a refusal here would end the handshake."""
    return True


def _select(_connection: SSL.Connection, offered: list[bytes]) -> Any:
    return _HTTP if _HTTP in offered else SSL.NO_OVERLAPPING_PROTOCOLS
