"""Implements TLS for servers that ask for a client certificate.

A kubelet accepts any in the handshake: a caller with a certificate of a wrong CA is answered 401,
and a token beside it still counts. Python's `ssl` cannot: it always ends the handshake of a
certificate that it does not trust. Nor does it let anybody see what a stranger shows before it is
parsed and its signatures are checked, which may take seconds (`shown_certificates`). So these
connections use pyOpenSSL's TLS, which lets us do both, behind the interface by which asyncio uses
`ssl`.

Without authorities, the handshake proves only that the peer has the key of its certificate, and
`vnode.kubelet.auth.client_certificates` decides whether to trust the certificate. With some, only
their clients pass the handshake.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from OpenSSL import SSL
from OpenSSL._util import ffi, lib
from OpenSSL.crypto import X509

from vnode.api.errors import ConfigError
from vnode.kube.tls_records import BoundedContext, BoundedRecords
from vnode.runtime.certs import shown_certificates
from vnode.runtime.certs.keypairs import Pair

_RECORD: Final = 16 * 1024  # bytes: the maximum of a TLS record
_DRAIN: Final = 96 * 1024  # bytes; above 128 KiB malloc gets memory from the kernel each time
_HTTP: Final = b"http/1.1"
_HANDSHAKE: Final = 22  # the type of a record whose messages are about the handshake
_START: Final = 4  # bytes of a message's type and length

T = TypeVar("T")

log = logging.getLogger(__name__)


class AskingContext(BoundedContext):
    """Serves with a certificate. Sessions are not resumed: every peer has to prove its key.

    With `authorities` (PEM), only clients with a certificate of theirs pass the handshake, else
    all. ConfigError if the pair cannot be used.
    """

    _openssl: SSL.Context

    def __new__(cls, _pair: Pair, _authorities: bytes | None = None) -> AskingContext:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(self, pair: Pair, authorities: bytes | None = None) -> None:
        self._authorities = authorities
        self._openssl = _context_of(pair, authorities)

    def set_certificate(self, pair: Pair) -> None:
        """Use this certificate from the next connection on; ConfigError leaves the former one."""
        self._openssl = _context_of(pair, self._authorities)

    def secure(
        self,
        fed: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool,
        server_hostname: str | bytes | None,
    ) -> Any:
        """Make the object that decrypts what one connection is fed."""
        assert server_side, "a context for servers"
        return _Peer(
            SSL.Connection(self._openssl), fed, outgoing, is_verified=self._authorities is not None
        )


def _context_of(pair: Pair, authorities: bytes | None) -> SSL.Context:
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(SSL.TLS1_2_VERSION)
    context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION)
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
    context.set_alpn_select_callback(_select)
    _look_at_what_is_shown(context)
    try:
        if authorities is None:
            context.set_verify_depth(0)  # the fewest signatures, as nothing comes of them
            context.set_verify(SSL.VERIFY_PEER, _accept_any)
        else:
            context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT)
            store = context.get_cert_store()
            assert store is not None, "each context has one"
            for authority in x509.load_pem_x509_certificates(authorities):
                store.add_cert(X509.from_cryptography(authority))

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


def _on_message(
    sent: int, version: int, kind: int, message: Any, size: int, _connection: Any, _given: Any
) -> None:
    """Spoil a message with certificates that cost too much, before OpenSSL parses it.

    OpenSSL tells of each message in the buffer in which it then reads it: here the handshake is
    made to fail for a message that makes no sense, as no other callback comes early enough.
    """
    if sent or kind != _HANDSHAKE or size <= _START:
        return

    content = ffi.buffer(ffi.cast("char *", message), size)
    shown = bytes(content)
    if shown[0] not in shown_certificates.TYPES:
        return

    try:
        wrong = shown_certificates.wrong_with(shown, version)
    except Exception:
        log.exception("certificates that a client shows cannot be judged")
        wrong = "they cannot be judged"

    if wrong:
        log.info("a TLS handshake is refused for what the client shows: %s", wrong)
        content[_START:size] = b"\xff" * (size - _START)


_message_callback: Any = ffi.callback(
    "void(int, int, int, const void *, size_t, SSL *, void *)", _on_message
)


def _look_at_what_is_shown(context: SSL.Context) -> None:
    lib.SSL_CTX_set_msg_callback(context._context, _message_callback)


def peer_certificates(secured: object) -> Sequence[x509.Certificate]:
    """Return the certificate that the peer of a connection has shown, then its issuers'.

    They are not verified, but as AskingContext says. Empty without a certificate, with one that
    cannot be decoded, and for other connections. `secured` is the `ssl_object` of the transport.
    """
    peer = secured.tls if isinstance(secured, BoundedRecords) else None
    try:
        return peer.certificates() if isinstance(peer, _Peer) else ()
    except ValueError:
        return ()


class _Peer:
    """Implements, for one connection, what asyncio uses of `ssl.SSLObject`; keeps certificates."""

    def __init__(
        self,
        connection: SSL.Connection,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        *,
        is_verified: bool,
    ) -> None:
        self._is_verified = is_verified
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

    def getpeercert(self, binary_form: bool = False) -> bytes | None:
        """Return the certificate in DER; None if it is not verified, which proves nothing."""
        if not self._is_verified or not binary_form:
            return None

        leaf = self._connection.get_peer_certificate(as_cryptography=True)
        return leaf.public_bytes(serialization.Encoding.DER) if leaf is not None else None

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
