"""Certificates: trusted by real TLS, renewed in time, replaced without a gap in trust."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api.errors import ConfigError
from vnode.runtime.certs import authority, issued, keypairs, webhook_bundle
from vnode.runtime.certs.authority import Generations
from vnode.runtime.certs.keypairs import CertificateRequest, Pair

NOW = datetime.now(UTC)
CA = keypairs.make_authority(NOW)
OTHER_CA = keypairs.make_authority(NOW)


async def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> bytes:
    """What the client reads after a TLS handshake with the server."""

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client, server_hostname=name
        )
        try:
            return await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                await writer.wait_closed()


async def is_refused(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """The client gets nothing; with TLS 1.3 it may only learn why when it reads."""
    try:
        return await handshake(server, client, "h") == b""
    except (ssl.SSLError, ConnectionError):
        return True


def strict_client(bundle: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=bundle.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


async def load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load a certificate where its files may be read: in a thread."""
    await asyncio.to_thread(keypairs.load, context, pair)


@pytest.mark.parametrize("host", ["127.0.0.1", "vnode.vnode.svc", "fd00::1"])
async def test_a_server_is_trusted_under_each_of_its_names(host: str) -> None:
    pair = keypairs.issue(
        CA, CertificateRequest("web", ("127.0.0.1", "vnode.vnode.svc", "fd00::1")), NOW
    )
    server = keypairs.server_context()
    await load(server, pair)
    assert await handshake(server, strict_client(CA.certificate), host) == b"hello"


async def test_a_loaded_certificate_serves_the_next_handshake() -> None:
    server = keypairs.server_context()
    await load(server, keypairs.issue(CA, CertificateRequest("a", ("old",)), NOW))
    await load(server, keypairs.issue(CA, CertificateRequest("a", ("new",)), NOW))
    assert await handshake(server, strict_client(CA.certificate), "new") == b"hello"


async def test_only_clients_of_the_ca_get_in() -> None:
    server = keypairs.server_context(CA.certificate)
    await load(server, keypairs.issue(CA, CertificateRequest("web", ("h",)), NOW))
    client = strict_client(CA.certificate)
    await load(client, keypairs.issue(CA, CertificateRequest(issued.CLIENT), NOW))
    assert await handshake(server, client, "h") == b"hello"

    stranger = strict_client(CA.certificate)
    await load(stranger, keypairs.issue(OTHER_CA, CertificateRequest(issued.CLIENT), NOW))
    assert await is_refused(server, stranger)

    a_server = strict_client(CA.certificate)
    await load(a_server, keypairs.issue(CA, CertificateRequest("web", ("h",)), NOW))
    assert await is_refused(server, a_server)


@given(st.floats(0, 1))
def test_renewal_is_at_70_to_90_percent_of_life(chance: float) -> None:
    certificate = CA.x509
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    done = (keypairs.renewal(certificate, chance) - start) / (end - start)
    assert 0.699 <= done <= 0.901


def test_a_leaf_ends_with_its_ca() -> None:
    late = NOW + keypairs.AUTHORITY_LIFE - timedelta(days=3)
    leaf = keypairs.issue(CA, CertificateRequest("x"), late)
    assert keypairs.expiry(leaf.x509) == keypairs.expiry(CA.x509)


def test_a_successor_is_published_before_it_signs() -> None:
    later = NOW + keypairs.AUTHORITY_LIFE * 0.8
    generations = Generations(CA).successor(later)
    assert generations.signer(later) is CA
    assert len(keypairs.parse_bundle(generations.bundle(later))) == 2
    used = later + authority.PUBLISHED_BEFORE_USE
    assert generations.signer(used) is generations.current
    ended = NOW + keypairs.AUTHORITY_LIFE + timedelta(hours=1)
    assert keypairs.parse_bundle(generations.bundle(ended)) == [generations.current.x509]


def test_a_first_ca_signs_at_once_and_an_ended_one_is_dropped() -> None:
    assert Generations(CA).signer(NOW) is CA
    assert Generations(CA).successor(NOW + 2 * keypairs.AUTHORITY_LIFE).previous is None


def test_the_secret_of_a_ca_is_read_back() -> None:
    for generations in (Generations(CA), Generations(CA, OTHER_CA)):
        assert authority.parse(authority.build("vnode", generations, NOW)) == generations


@pytest.mark.parametrize(
    "pair", [Pair(b"", b""), Pair(b"x", b"y"), Pair(CA.certificate, OTHER_CA.key)]
)
def test_a_damaged_secret_is_refused_with_the_cure(pair: Pair) -> None:
    secret = authority.build("vnode", Generations(CA), NOW)
    damaged = authority.secret_of("", "", {"tls.crt": pair.certificate, "tls.key": pair.key})
    secret["data"] |= damaged["data"]
    with pytest.raises(ConfigError, match=r"vnode/vnode-ca .* delete it"):
        authority.parse(secret)


def test_a_key_is_not_printed() -> None:
    assert "KEY" not in repr(CA)
    assert "KEY" not in repr(Generations(CA))


def test_issuers_are_told_apart() -> None:
    leaf = keypairs.issue(CA, CertificateRequest("x"), NOW).x509
    assert keypairs.issued_by(leaf, [OTHER_CA.x509, CA.x509])
    assert not keypairs.issued_by(leaf, [OTHER_CA.x509])


def test_files_are_private_and_written_whole(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "credentials"
    issued.write_files(folder, issued.contents(CA, b"bundle"))
    issued.write_files(folder, issued.contents(OTHER_CA, b"bundle"))
    assert sorted(path.name for path in folder.iterdir()) == sorted(issued.FILES)
    assert (folder / "tls.key").read_bytes() == OTHER_CA.key
    assert stat.S_IMODE((folder / "tls.key").stat().st_mode) == 0o600


def test_files_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--credentials-dir"):
        issued.write_files(tmp_path / "file", {"tls.crt": b""})


def test_every_webhook_of_a_configuration_is_made_to_trust_us() -> None:
    held = authority.secret_of("", "", {"ca": CA.certificate})["data"]["ca"]
    both = keypairs.bundle([OTHER_CA.certificate, CA.certificate])
    more = authority.secret_of("", "", {"ca": both})["data"]["ca"]
    configuration = {
        "webhooks": [
            {"name": "good", "clientConfig": {"caBundle": held}},
            {"name": "wiped", "clientConfig": {}},
            {"name": "garbage", "clientConfig": {"caBundle": "###"}},
            {"name": "newer", "clientConfig": {"caBundle": more}},
        ]
    }
    patch = webhook_bundle.trust_patch(configuration, CA.certificate)
    assert [entry["value"] for entry in patch if entry["op"] == "test"] == ["wiped", "garbage"]
    assert [entry["path"] for entry in patch if entry["op"] == "add"] == [
        "/webhooks/1/clientConfig/caBundle",
        "/webhooks/2/clientConfig/caBundle",
    ]
