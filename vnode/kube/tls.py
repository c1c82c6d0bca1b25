"""Makes TLS contexts for the servers of kubeconfigs: trusted CAs and client certificates."""

from __future__ import annotations

import ssl
import tempfile
from functools import lru_cache
from typing import Final

from vnode.kube.kubeconfig import FieldError


def create(authority: bytes | None, insecure: bool) -> ssl.SSLContext:
    """Make a context that trusts these PEM certificates, else those that the machine trusts.

    FieldError if they are not PEM certificates.
    """
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise FieldError("certificate-authority is no PEM certificate") from error

    # Since Python 3.13 the default refuses CAs without key identifiers, which clusters have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

    return context


shared: Final = lru_cache(maxsize=64)(create)
"""`create`, for users without a client certificate: the same context for the same authority.
Making one takes ten milliseconds, and many Targets may share a cluster."""


def _refuse() -> str:
    """Raise FieldError, where OpenSSL would ask for a password at the terminal."""
    raise FieldError(
        "client-key is encrypted: use a key that needs no password (openssl pkey -in KEY)"
    )


def load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Make `context` present this PEM certificate; FieldError if the two are not a pair."""
    with tempfile.NamedTemporaryFile() as file:  # the ssl module takes no certificate from memory
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_refuse)
        except (ssl.SSLError, ValueError, OSError) as error:
            raise FieldError("client-certificate and client-key are not a PEM pair") from error
