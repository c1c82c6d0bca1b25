"""Judges the certificates that a client shows, before OpenSSL does anything with them.

OpenSSL parses all of them, with their keys, and checks the signatures of as many as lead to one
another, whether or not anybody vouches for them. Both may take seconds (`vnode.kube.key_bounds`),
and nobody need have credentials for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cryptography import x509

from vnode.kube import key_bounds

MOST: Final = 4
"""Certificates: the client's own, and those of three issuers. Clients of Kubernetes show one."""
_CERTIFICATES: Final = 11  # types of messages
_COMPRESSED: Final = 25
TYPES: Final = frozenset({_CERTIFICATES, _COMPRESSED})
_TLS_1_3: Final = 0x0304
_HEADER: Final = 4  # bytes of a message's type and length
_LENGTH: Final = 3  # bytes of the length of a list, and of a certificate
_EXTENSIONS: Final = 2  # bytes of the length of a certificate's extensions


def wrong_with(message: bytes, version: int) -> str:
    """Return why a Certificate message of this version of TLS must not be parsed; "" if it may.

    A message that is cut short is left to OpenSSL, as far as what can be read of it may be parsed.
    """
    if message[0] == _COMPRESSED:
        return "they are compressed, which no server of ours offers"

    for number, encoded in enumerate(_certificates(message, version), 1):
        if number > MOST:
            return f"there are more than {MOST}"

        try:
            certificate = x509.load_der_x509_certificate(encoded)
        except ValueError:
            return "one is no certificate"

        if wrong := key_bounds.wrong_with(certificate):
            return f"one is not used: {wrong}"

    return ""


def _certificates(message: bytes, version: int) -> Iterator[bytes]:
    at = _HEADER
    if version >= _TLS_1_3:
        at += 1 + message[at]  # a context, which is empty

    at += _LENGTH
    while at + _LENGTH <= len(message):
        start = at + _LENGTH
        end = start + int.from_bytes(message[at:start], "big")
        yield message[start:end]
        at = end
        if version >= _TLS_1_3:
            at += _EXTENSIONS + int.from_bytes(message[at : at + _EXTENSIONS], "big")
