"""Issues certificates of every kind, good and bad, for tests of authentication."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER = ExtendedKeyUsageOID.SERVER_AUTH
ANY = ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE
HOUR = timedelta(hours=1)
_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


@dataclass(frozen=True)
class KeyAndCertificate:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def show(self, context: ssl.SSLContext, *issuers: KeyAndCertificate) -> ssl.SSLContext:
        """Have a client show this certificate, and those of its issuers."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "pair.pem"
            file.write_bytes(b"".join([self.pem, *(i.pem for i in issuers), self.key_pem]))
            context.load_cert_chain(file)

        return context


def unverified() -> ssl.SSLContext:
    """Make the context of a client to whom any server will do: it is not what is tested."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def load(certificate: Path, key: Path) -> KeyAndCertificate:
    """Load a certificate and its key from PEM files."""
    private = serialization.load_pem_private_key(key.read_bytes(), password=None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    return KeyAndCertificate(x509.load_pem_x509_certificate(certificate.read_bytes()), private)


def kubelet_client(pki: Path) -> KeyAndCertificate:
    """Load what the API server whose files are there shows to kubelets."""
    return load(pki / "apiserver-kubelet-client.crt", pki / "apiserver-kubelet-client.key")


def issue(
    name: str,
    issuer: KeyAndCertificate | None = None,
    *,
    groups: Sequence[str] = (),
    ca: bool | None = None,
    length: int | None = None,
    usages: Sequence[x509.ObjectIdentifier] = (),
    may: str = "",
    critical: x509.ObjectIdentifier | None = None,
    start: timedelta = -HOUR,
    end: timedelta = HOUR,
) -> KeyAndCertificate:
    """Issue a certificate, self-signed without an issuer.

    `start` and `end` count from now; `may` is the only key usage.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    names = [x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else []
    subject = x509.Name([*organizations, *names])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + start)
        .not_valid_after(now + end)
    )
    for extension in _extensions(ca, length, usages, may):
        builder = builder.add_extension(extension, critical=False)

    if critical:
        unknown = x509.UnrecognizedExtension(critical, b"\x05\x00")
        builder = builder.add_extension(unknown, critical=True)

    return KeyAndCertificate(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def _extensions(
    ca: bool | None, length: int | None, usages: Sequence[x509.ObjectIdentifier], may: str
) -> list[x509.ExtensionType]:
    found: list[x509.ExtensionType] = []
    if ca is not None:
        found.append(x509.BasicConstraints(ca=ca, path_length=length))

    if usages:
        found.append(x509.ExtendedKeyUsage(usages))

    if may:
        found.append(x509.KeyUsage(**{usage: usage == may for usage in _USAGES}))

    return found
