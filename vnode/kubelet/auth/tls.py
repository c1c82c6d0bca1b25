"""TLS for a server that asks for a client certificate and takes whatever comes, unverified.

A kubelet does so: whoever shows a certificate of a wrong authority is answered 401, and a token
beside it still counts. Python's `ssl` cannot: it ends the handshake of a certificate that it does
not trust, and gives no say in that. So the TLS of these connections is pyOpenSSL's, which does,
behind the interface by which asyncio uses `ssl`.

What the handshake proves is that the peer has the key of the certificate that it shows. Nothing
else: whether to believe it is for `vnode.kubelet.auth.client_certificates` to say, at each request.
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

_RECORD: Final = 16 * 1024  # bytes: the most that one TLS record holds
_DRAIN: Final = 96 * 1024  # bytes; above 128 KiB, memory comes from the kernel each time
_HTTP: Final = b"http/1.1"

T = TypeVar("T")


class OptionalClientCertContext(ssl.SSLContext):
    """A server context with a certificate. Sessions are not resumed: every peer proves itself.

    ConfigError if the pair cannot be used.
    """

    _openssl: SSL.Context

    def __new__(cls, _pair: Pair) -> OptionalClientCertContext:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, pair: Pair) -> None:
        self._openssl = _made_for(pair)

    def show(self, pair: Pair) -> None:
        """Show this certificate from the next connection on; ConfigError leaves the former one."""
        self._openssl = _made_for(pair)

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> Any:
        """What asyncio calls for each connection."""
        assert server_side, "a context for servers"
        return _Peer(SSL.Connection(self._openssl), incoming, outgoing)


def _made_for(pair: Pair) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_alpn_select_callback(_select)
    context.set_verify(SSL.VERIFY_PEER, _take)
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


def shown(request: web.Request) -> Sequence[x509.Certificate]:
    """The caller's certificate, then its issuers as far as it sent them: proven, not believed yet.

    None without a certificate, with one that cannot be decoded, and once the caller is gone.
    """
    peer = request.get_extra_info("ssl_object")
    try:
        return peer.shown() if isinstance(peer, _Peer) else ()
    except ValueError:
        return ()


class _Peer:
    """One connection: the part of `ssl.SSLObject` that asyncio uses, and the shown certificates."""

    def __init__(
        self, connection: SSL.Connection, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        self._connection = connection
        self._incoming = incoming
        self._outgoing = outgoing
        connection.set_accept_state()

    def do_handshake(self) -> None:
        """Go on with the handshake."""
        self._call(self._connection.do_handshake)

    def read(self, size: int = _RECORD, buffer: Any = None) -> bytes | int:
        """Some bytes, or how many were put into the buffer; nothing at the peer's end.

        An answer that TLS itself has to give goes out when there is nothing more to read.
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
        """Take all of these bytes: what goes out waits in memory, so nothing can block."""
        return self._call(lambda: self._send(data))

    def _send(self, data: Any) -> int:
        """Record by record, but put out together: each putting out costs as much as a record."""
        if len(data) <= _RECORD:
            return self._connection.send(data)

        view = memoryview(data)
        return sum(
            self._connection.send(view[start : start + _RECORD])
            for start in range(0, len(view), _RECORD)
        )

    def unwrap(self) -> None:
        """Say goodbye, and hear it."""
        if not self._call(self._connection.shutdown):
            raise ssl.SSLWantReadError

    def shown(self) -> Sequence[x509.Certificate]:
        """See the function of this name. ValueError for what cannot be decoded."""
        leaf = self._connection.get_peer_certificate(as_cryptography=True)
        if leaf is None:
            return ()

        chain = self._connection.get_peer_cert_chain(as_cryptography=True) or ()
        return (leaf, *(issuer for issuer in chain if issuer != leaf))

    def getpeercert(self, binary_form: bool = False) -> None:
        """None: of a certificate that is not verified, nothing may be believed."""

    def cipher(self) -> tuple[str | None, str | None, int | None]:
        """Name, protocol and bits of the cipher."""
        known = self._connection
        return known.get_cipher_name(), known.get_cipher_version(), known.get_cipher_bits()

    def compression(self) -> None:
        """There is none."""

    def _call(self, step: Callable[[], T], *, drain: bool = True) -> T:
        """Feed in what has arrived, do it, put out what it made; errors are those of `ssl`."""
        if self._incoming.pending:
            self._feed(self._incoming.read())

        try:
            done = step()
        except SSL.Error as error:
            self._drain()
            raise _as_of_ssl(error) from error

        if drain:
            self._drain()

        return done

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


def _as_of_ssl(error: SSL.Error) -> ssl.SSLError:
    if isinstance(error, SSL.WantReadError):
        return ssl.SSLWantReadError()

    if isinstance(error, SSL.ZeroReturnError):
        return ssl.SSLZeroReturnError()

    return ssl.SSLError(f"TLS: {error}")


def _take(_connection: Any, _certificate: Any, _error: int, _depth: int, _ok: int) -> bool:
    """Take any certificate: a verdict here would end the handshake, and is not wanted yet."""
    return True


def _select(_connection: SSL.Connection, offered: list[bytes]) -> Any:
    return _HTTP if _HTTP in offered else SSL.NO_OVERLAPPING_PROTOCOLS
