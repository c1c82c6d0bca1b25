"""The certificates of one cluster: two authorities, and what each component shows or trusts.

Elliptic curve keys throughout: a cluster needs a dozen, and RSA keys would take seconds. So no
component makes its own serving certificate, as that would have an RSA key.
"""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIFETIME = datetime.timedelta(days=365)
ADMINISTRATORS = "system:masters"


@dataclass(frozen=True, slots=True)
class CertificatePair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return _private_pem(self.key)


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """Signs for its cluster. `pair` is its own, self-signed."""

    pair: CertificatePair

    def client(self, name: str, *groups: str) -> CertificatePair:
        """Return a client certificate: `name` becomes the user, `groups` the user's groups."""
        return self._issue(name, groups, ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(self, name: str, hosts: Sequence[str]) -> CertificatePair:
        """Return a serving certificate for `hosts`, DNS names and addresses."""
        return self._issue(name, (), ExtendedKeyUsageOID.SERVER_AUTH, hosts)

    def _issue(
        self, name: str, groups: Sequence[str], usage: x509.ObjectIdentifier, hosts: Sequence[str]
    ) -> CertificatePair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(name, groups), self.pair.certificate.subject, key)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        # Since Python 3.13, `ssl` wants to be told whose key has signed.
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.pair.key.public_key())
        builder = builder.add_extension(signer, critical=False)
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        return CertificatePair(builder.sign(self.pair.key, hashes.SHA256()), key)


def authority(name: str) -> CertificateAuthority:
    """Return a new authority with a key of its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name, ())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
    )
    return CertificateAuthority(CertificatePair(builder.sign(key, hashes.SHA256()), key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # An hour back: clocks of machines that share a folder may differ.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _subject(name: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def write_pair(folder: Path, name: str, pair: CertificatePair) -> None:
    """Write `NAME.crt` and `NAME.key`, the key readable by its owner only."""
    (folder / f"{name}.crt").write_bytes(pair.certificate_pem)
    _write_secret(folder / f"{name}.key", pair.key_pem)


def write_signing_key(folder: Path, name: str) -> None:
    """Write a key pair for tokens of service accounts: `NAME.pub` and `NAME.key`."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / f"{name}.pub").write_bytes(public)
    _write_secret(folder / f"{name}.key", _private_pem(key))


def _write_secret(file: Path, content: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(content)
