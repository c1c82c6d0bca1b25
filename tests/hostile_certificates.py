"""Certificates and keys that are made to cost whoever looks at them much."""

from __future__ import annotations

import functools
import math
import secrets
import ssl
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

# y² = x³ + x + 1 over a prime field whose order less one has 2^500 as a factor, with compressed
# points: OpenSSL looks for their roots, for hundreds of milliseconds, when it parses the key.
_FACTOR, _POWER = 0x6B, 500


@functools.cache
def slow_key() -> rsa.RSAPrivateKey:
    """Make an RSA key of 3072 bits whose public exponent is as long."""
    return with_exponent(3070)


def with_exponent(bits: int) -> rsa.RSAPrivateKey:
    """Make an RSA key of 3072 bits whose public exponent has so many."""
    made = rsa.generate_private_key(65537, 3072).private_numbers()
    order = (made.p - 1) * (made.q - 1)
    e = 0
    while math.gcd(e, order) != 1:
        e = secrets.randbits(bits) | 1 << (bits - 1) | 1

    d = pow(e, -1, order)
    numbers = rsa.RSAPrivateNumbers(
        made.p,
        made.q,
        d,
        d % (made.p - 1),
        d % (made.q - 1),
        made.iqmp,
        rsa.RSAPublicNumbers(e, made.p * made.q),
    )
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def made_up_rsa(bits: int, *, first: int | None = None) -> rsa.RSAPrivateKey:
    """Make what looks like an RSA key, of numbers that are no primes.

    `first` is the length of one of its factors, half of all bits by default.
    """
    p = q = 3
    while math.gcd(p, q) > 1:
        p = _odd(first or bits // 2)
        q = _odd(bits - p.bit_length())

    n = p * q
    d = _odd(bits - 8)
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), rsa.RSAPublicNumbers(65537, n)
    )
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def _odd(bits: int) -> int:
    return secrets.randbits(bits) | 3 << (bits - 2) | 1


def certificate(
    subject: str, issuer: str, key: Any, signer: Any, *, ca: bool = True, host: str = ""
) -> x509.Certificate:
    """Make a certificate; `key` is whose it is, and `signer` signs it."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca, None), critical=True)
    )
    if host:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False
        )

    return builder.sign(signer, hashes.SHA256())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def long_chain(key: Any, count: int, host: str = "localhost") -> list[x509.Certificate]:
    """Make so many certificates of one key, each signed by the next; the last signs itself."""
    last = count - 1
    return [
        certificate(
            str(number),
            str(min(number + 1, last)),
            key,
            key,
            ca=number > 0,
            host=host if not number else "",
        )
        for number in range(count)
    ]


def pem(certificates: Sequence[x509.Certificate]) -> bytes:
    """Return certificates as PEM."""
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def key_pem(key: Any) -> bytes:
    """Return a private key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def show(context: ssl.SSLContext, certificates: Sequence[x509.Certificate], key: Any) -> None:
    """Have a context show these certificates."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pair.pem"
        file.write_bytes(pem(certificates) + key_pem(key))
        context.load_cert_chain(file)


def on_a_curve_of_ones_own() -> bytes:
    """Make a certificate, as DER, whose key is on a curve that it describes itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    plain = certificate("curve", "curve", key, key)
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signed = plain.tbs_certificate_bytes
    inner = _content(signed).replace(public, _spki())
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")
    return _der(0x30, _der(0x30, inner), algorithm, _der(0x03, b"\0", plain.signature))


def _spki() -> bytes:
    prime = _prime()
    size = (prime.bit_length() + 7) // 8
    field: Callable[[int], bytes] = lambda number: _der(4, number.to_bytes(size, "big"))  # noqa: E731
    of_primes, of_keys = (bytes.fromhex("06072a8648ce3d" + end) for end in ("0101", "0201"))
    parameters = _der(
        0x30,
        _integer(1),
        _der(0x30, of_primes, _integer(prime)),
        _der(0x30, field(1), field(1)),
        _der(4, _point(prime, size, 1)),
        _integer(prime - 2),
        _integer(1),
    )
    return _der(0x30, _der(0x30, of_keys, parameters), _der(3, b"\0", _point(prime, size, 1000)))


def _prime() -> int:
    factor = _FACTOR
    while True:
        candidate = (factor << _POWER) + 1
        if all(pow(base, candidate - 1, candidate) == 1 for base in (2, 3, 5, 7)):
            return candidate

        factor += 2


def _point(prime: int, size: int, start: int) -> bytes:
    """Return a compressed point, the first one from a value on."""
    for x in range(start, start + 1000):
        if pow(x**3 + x + 1, (prime - 1) // 2, prime) == 1:
            return b"\x02" + x.to_bytes(size, "big")

    raise AssertionError("half of all values have a point")


def _integer(number: int) -> bytes:
    return _der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 128:
        length = bytes([size])
    else:
        encoded = size.to_bytes((size.bit_length() + 7) // 8, "big")
        length = bytes([0x80 | len(encoded)]) + encoded

    return bytes([tag]) + length + content


def _content(encoded: bytes) -> bytes:
    return encoded[2 + (encoded[1] & 0x7F if encoded[1] & 0x80 else 0) :]
