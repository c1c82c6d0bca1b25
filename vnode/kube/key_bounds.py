"""Bounds the keys that others choose, before anything is computed with them.

What a key costs is up to whoever made it: an RSA signature takes a thousand times as long with a
public exponent of thousands of bits, and OpenSSL computes roots on whatever curve a certificate
describes, half a second for 700 bytes, when it only parses it. `cryptography` parses certificates
without their keys, and knows no curves but the named ones.
"""

from __future__ import annotations

from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from vnode.kube.kubeconfig import ENCRYPTED, FieldError

MOST_RSA_BITS: Final = 8192
"""Of keys of others, with which signatures are checked: a third of a millisecond."""
MOST_PRIVATE_BITS: Final = 4096
"""Of RSA keys that we sign with at each handshake: 5 ms, and eight times that with 8192 bits."""
MOST_AUTHORITIES: Final = 32
MOST_BYTES: Final = 64 * 1024  # of the authorities of a kubeconfig, in PEM
_MOST_SHOWN: Final = 8  # certificates of a client: its own, and those of its issuers
_LEAST_RSA_BITS: Final = 1024  # OpenSSL asks for more; shorter ones cost nothing
_EXPONENT_BITS: Final = 33  # as many as Go takes, and 16 in practice
_CURVES: Final = (ec.SECP224R1, ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_BLOCK: Final = b"-----BEGIN "
_SLACK: Final = 64  # bits by which one of two factors may be longer than half of the modulus
_NO_PAIR: Final = "client-certificate and client-key are not a PEM pair"


def wrong_with(certificate: x509.Certificate) -> str:
    """Return why nothing should be computed with a certificate's key; "" for all usual keys."""
    try:
        key = certificate.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "its key is of no usual kind"

    return _wrong_with_key(key)


def _wrong_with_key(key: Any) -> str:
    if isinstance(key, rsa.RSAPublicKey):
        numbers = key.public_numbers()
        if not _LEAST_RSA_BITS <= key.key_size <= MOST_RSA_BITS:
            return f"its RSA key has {key.key_size} bits"

        return "" if numbers.e.bit_length() <= _EXPONENT_BITS else "its RSA key has a huge exponent"

    if isinstance(key, ec.EllipticCurvePublicKey):
        return "" if isinstance(key.curve, _CURVES) else f"its key is of the curve {key.curve.name}"

    return "" if isinstance(key, ed25519.Ed25519PublicKey) else "its key is of no usual kind"


def authorities(pem: bytes) -> bytes:
    """Return the certificates of a kubeconfig's CA bundle, as PEM that anybody reads alike.

    FieldError for a bundle that would cost more than any that people have.
    """
    unreadable = "certificate-authority is no PEM certificate"
    return _bounded("certificate-authority", pem, MOST_AUTHORITIES, unreadable)


def _bounded(field: str, pem: bytes, most: int, unreadable: str) -> bytes:
    if len(pem) > MOST_BYTES:
        raise FieldError(
            f"{field} has {len(pem)} bytes, and may have {MOST_BYTES}: leave out certificates that "
            "this server does not need"
        )

    count = pem.count(_BLOCK)
    if count > most:
        raise FieldError(
            f"{field} has {count} certificates, and may have {most}: leave out those that this "
            "server does not need"
        )

    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise FieldError(unreadable) from error

    for certificate in certificates:
        if wrong := wrong_with(certificate):
            raise FieldError(f"{field} has a certificate that is not used: {wrong}")

    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def client_pair(certificate: bytes, key: bytes) -> bytes:
    """Return a client's certificates and private key as one PEM; FieldError if it may not be used.

    The key's own numbers are judged: OpenSSL computes with them, whatever the certificate says.
    """
    shown = _bounded("client-certificate", certificate, _MOST_SHOWN, _NO_PAIR)
    try:
        # The check whether an RSA key has primes would be what takes long.
        private = serialization.load_pem_private_key(
            key, password=None, unsafe_skip_rsa_key_validation=True
        )
    except TypeError as error:
        raise FieldError(ENCRYPTED) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise FieldError(_NO_PAIR) from error

    if isinstance(private, rsa.RSAPrivateKey):
        _check_rsa(private)
    elif wrong := _wrong_with_key(private.public_key()):
        raise FieldError(f"client-key is not used: {wrong}")

    return shown + private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _check_rsa(private: rsa.RSAPrivateKey) -> None:
    if private.key_size > MOST_PRIVATE_BITS:
        raise FieldError(
            f"client-key has {private.key_size} bits, and may have {MOST_PRIVATE_BITS}: use a "
            "shorter one, or one of an elliptic curve"
        )

    if wrong := _wrong_with_key(private.public_key()):
        raise FieldError(f"client-key is not used: {wrong}")

    numbers = private.private_numbers()
    factors = (numbers.p, numbers.q, numbers.dmp1, numbers.dmq1, numbers.iqmp)
    most = max(number.bit_length() for number in factors)
    if most > private.key_size // 2 + _SLACK or numbers.d.bit_length() > private.key_size:
        raise FieldError("client-key is no RSA key: its numbers are longer than its modulus")
