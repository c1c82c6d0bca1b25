"""Makes keys, certificates and TLS contexts, and computes when to renew certificates.

All keys are EC P-256: small, quick, and supported by every TLS stack of Kubernetes. Times, and the
chance that spreads renewals, are passed in.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vnode.api.errors import ConfigError

AUTHORITY_LIFE: Final = timedelta(days=3 * 365)
LEAF_LIFE: Final = timedelta(days=90)
RENEW_FROM: Final = 0.7  # of a certificate's life, as in the kubelet
RENEW_TO: Final = 0.9
_BACKDATED: Final = timedelta(minutes=5)  # clocks of other machines may be behind
_ORGANISATION: Final = "vnode"
_KEPT: Final = 64  # certificates of clients, of which there are few: schedulers, and replicas


@dataclass(frozen=True, slots=True)
class Pair:
    """Holds a certificate and its private key, both in PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "Pair(...)"

    @property
    def x509(self) -> x509.Certificate:
        """The certificate, parsed; ValueError if it is not one."""
        return x509.load_pem_x509_certificate(self.certificate)


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """Describes a certificate: for a server at `hosts` (names, IP addresses), else for a client."""

    common_name: str
    hosts: tuple[str, ...] = ()

    @property
    def is_client(self) -> bool:
        """Whether the certificate is for a client: it has no host."""
        return not self.hosts


def make_authority(now: datetime, life: timedelta = AUTHORITY_LIFE) -> Pair:
    """Make a self-signed CA. Its name has the date, so that two CAs differ in their names."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"vnode CA {now:%Y-%m-%d %H:%M:%S}")
    builder = _builder(name, name, key.public_key(), now, now + life)
    usage = _usage(sign_certificates=True)
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _signed(builder, key, key)


def issue(
    authority: Pair, request: CertificateRequest, now: datetime, life: timedelta = LEAF_LIFE
) -> Pair:
    """Make a key and its certificate, which ends with its CA at the latest."""
    issuer = authority.x509
    signer = _private_key(authority)
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + life, issuer.not_valid_after_utc)
    builder = _builder(_name(request.common_name), issuer.subject, key.public_key(), now, end)
    purpose = (
        ExtendedKeyUsageOID.CLIENT_AUTH if request.is_client else ExtendedKeyUsageOID.SERVER_AUTH
    )
    builder = (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if request.hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in request.hosts])
        builder = builder.add_extension(names, critical=False)

    return _signed(builder, key, signer)


def signing_request(
    common_name: str, organisation: str, hosts: Sequence[str]
) -> tuple[bytes, bytes]:
    """Make a private key and a signing request for it; return the request, then the key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation),
        x509.NameAttribute(NameOID.COMMON_NAME, common_name),
    ]
    names = x509.SubjectAlternativeName([_host(host) for host in hosts])
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name(subject))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    return request.public_bytes(serialization.Encoding.PEM), _private_pem(key)


def expiry(certificate: x509.Certificate) -> datetime:
    """Return when a certificate ends, in UTC."""
    return certificate.not_valid_after_utc


def renewal(certificate: x509.Certificate, chance: float) -> datetime:
    """Return when to renew: at 70 to 90 % of a certificate's life, by `chance` (0 to 1)."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return start + (end - start) * (RENEW_FROM + (RENEW_TO - RENEW_FROM) * chance)


def issued_by(certificate: x509.Certificate, authorities: Iterable[x509.Certificate]) -> bool:
    """Tell whether one of the CAs signed a certificate."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112 - a wrong name, key type or signature: all mean no
            continue

        return True

    return False


def bundle(certificates: Sequence[bytes]) -> bytes:
    """Join certificates in PEM."""
    return b"".join(certificate.strip() + b"\n" for certificate in certificates)


@functools.lru_cache(maxsize=_KEPT)
def is_in_bundle(certificate: x509.Certificate, pem: bytes) -> bool:
    """Tell whether one of the CAs in a bundle signed a certificate; answers are kept."""
    return issued_by(certificate, parse_bundle(pem))


@functools.lru_cache(maxsize=_KEPT)
def parse_der(encoded: bytes) -> x509.Certificate:
    """Return a certificate, parsed once for all the connections on which a client shows it."""
    return x509.load_der_x509_certificate(encoded)


def parse_bundle(pem: bytes) -> list[x509.Certificate]:
    """Return the certificates of a bundle; empty if it has none or is not PEM."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        return []


def check_pair(pair: Pair, *, foreign: bool = False) -> None:
    """Raise ConfigError unless this is a certificate with its private key.

    The key has to be of the kind that we make, unless the pair is `foreign`.
    """
    try:
        key = serialization.load_pem_private_key(pair.key, password=None) if foreign else None
        matches = pair.x509.public_key() == (key or _private_key(pair)).public_key()
    except (ValueError, TypeError) as error:
        raise ConfigError("not a certificate and a private key in PEM") from error

    if not matches:
        raise ConfigError("the private key does not match the certificate")


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user may read; readers never see a part of the content."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANISATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common_name),
        ]
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _BACKDATED)
        .not_valid_after(end)
    )


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign_certificates,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private_key(pair: Pair) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pair.key, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("not an elliptic curve key")

    return key


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
) -> Pair:
    certificate = builder.sign(signer, hashes.SHA256())
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        _private_pem(key),
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
