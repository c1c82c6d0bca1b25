"""Certificates and CAs: renewed in time, replaced without a gap in trust, kept safe."""

from __future__ import annotations

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
