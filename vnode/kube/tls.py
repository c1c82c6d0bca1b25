"""Makes TLS contexts for the servers of kubeconfigs: trusted CAs and client certificates.

Who wrote a kubeconfig need not be trusted, nor the server that it names: what either may have the
agent compute is bounded, of keys and certificates by `key_bounds`, of handshakes by their ciphers.
Commands, which trust their users' kubeconfigs, do without `key_bounds` and what it imports.
"""

from __future__ import annotations

import ssl
import tempfile
from functools import lru_cache
from typing import Final

from vnode.kube.kubeconfig import ENCRYPTED, FieldError

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2; every API server of Kubernetes speaks one of them. With DHE a server would choose the
number to compute with, of 10,000 bits if it likes."""


def create(authority: bytes | None, insecure: bool, *, bounded: bool = True) -> ssl.SSLContext:
    """Make a context that trusts these PEM certificates, else those that the machine trusts.

    FieldError if they are not PEM certificates, or, if `bounded`, of more or other keys than people
    have; without it they are the operator's own.
    """
    if authority and bounded:
        from vnode.kube import key_bounds

        authority = key_bounds.authorities(authority)

    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise FieldError("certificate-authority is no PEM certificate") from error

    # Since Python 3.13 the default refuses CAs without key identifiers, which clusters have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

    return context


shared: Final = lru_cache(maxsize=64)(create)
"""`create`, for users without a client certificate: the same context for the same authority.
Making one takes ten milliseconds, and many Targets may share a cluster."""


def _refuse() -> str:
    """Raise FieldError, where OpenSSL would ask for a password at the terminal."""
    raise FieldError(ENCRYPTED)


def load_client_certificate(
    context: ssl.SSLContext, certificate: bytes, key: bytes, *, bounded: bool = True
) -> None:
    """Make `context` present this PEM certificate; FieldError if the two are not a pair.

    Also, if `bounded`, for a key that takes long to sign with.
    """
    if bounded:
        from vnode.kube import key_bounds

        pair = key_bounds.client_pair(certificate, key)
    else:
        pair = certificate.rstrip() + b"\n" + key

    with tempfile.NamedTemporaryFile() as file:  # the ssl module takes no certificate from memory
        file.write(pair)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_refuse)
        except (ssl.SSLError, ValueError, OSError) as error:
            raise FieldError("client-certificate and client-key are not a PEM pair") from error
