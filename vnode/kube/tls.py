"""TLS to servers that a kubeconfig names: whom to trust, and what certificate to show."""

from __future__ import annotations

import ssl
import tempfile
from functools import lru_cache
from typing import Final

from vnode.api.errors import ConfigError


def trusting(authority: bytes | None, insecure: bool) -> ssl.SSLContext:
    """A context of one's own that trusts these PEM certificates, or what the machine trusts.

    ConfigError if they are none.
    """
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError("the kubeconfig's certificate-authority is no PEM certificate") from error

    # Since Python 3.13 the default refuses CAs without key identifiers, which clusters have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

    return context


shared: Final = lru_cache(maxsize=64)(trusting)
"""Without credentials a context is the same for all that trust the same authority: it takes ten
milliseconds to make, and many Targets may share a cluster."""


def _refuse() -> str:
    """In the place of OpenSSL's own way to learn a password, which asks at the terminal."""
    raise ConfigError(
        "the kubeconfig's client-key is encrypted: put one there that needs no password (openssl "
        "pkey -in KEY)"
    )


def load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Make `context` present this PEM certificate; ConfigError if the two are not a pair."""
    with tempfile.NamedTemporaryFile() as file:  # the ssl module takes no certificate from memory
        file.write(certificate.rstrip() + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=_refuse)
        except (ssl.SSLError, ValueError, OSError) as error:
            raise ConfigError(
                "the kubeconfig's client-certificate and client-key are not a PEM pair"
            ) from error
