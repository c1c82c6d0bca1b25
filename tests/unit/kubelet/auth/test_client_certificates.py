"""Which client certificates are believed: each way to be wrong is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from tests.certificates import ANY, CLIENT, HOUR, SERVER, KeyAndCertificate, issue
from vnode.kubelet.auth import client_certificates

ROOT = issue("kubernetes", ca=True)
MINUTE = timedelta(minutes=1)


def believed(
    *shown: KeyAndCertificate, authorities: tuple[KeyAndCertificate, ...] = (ROOT,)
) -> bool:
    found = client_certificates.verify(
        [one.certificate for one in shown],
        [one.certificate for one in authorities],
        datetime.now(UTC),
    )
    assert found is None or found == shown[0].certificate
    return found is not None


@pytest.mark.parametrize("usages", [[CLIENT], [SERVER, CLIENT], [ANY], []], ids=str)
def test_a_certificate_of_the_authority_is_believed(usages):
    assert believed(issue("me", ROOT, usages=usages))


def test_an_intermediate_that_is_shown_leads_to_the_authority():
    intermediate = issue("team", ROOT, ca=True)
    leaf = issue("me", intermediate, usages=[CLIENT])

    assert believed(leaf, intermediate)
    assert believed(leaf, issue("unrelated"), intermediate)
    assert not believed(leaf)


def test_an_intermediate_can_be_the_authority():
    intermediate = issue("team", ROOT, ca=True)

    assert believed(issue("me", intermediate, usages=[CLIENT]), authorities=(intermediate,))
    assert not believed(issue("me", ROOT, usages=[CLIENT]), authorities=(intermediate,))


def test_any_of_several_authorities_will_do():
    other = issue("other", ca=True)

    assert believed(issue("me", ROOT, usages=[CLIENT]), authorities=(other, ROOT))
    assert believed(issue("me", other, usages=[CLIENT]), authorities=(other, ROOT))


def test_nobody_is_believed_without_certificate_or_authority():
    assert not believed()
    assert not believed(issue("me", ROOT, usages=[CLIENT]), authorities=())


IMPOSTOR = issue("kubernetes", ca=True)  # of the same name, with another key


@pytest.mark.parametrize(
    "leaf",
    [
        pytest.param(issue("me", ROOT, usages=[CLIENT], end=-MINUTE), id="expired"),
        pytest.param(issue("me", ROOT, usages=[CLIENT], start=HOUR / 2), id="not yet valid"),
        pytest.param(issue("me", ROOT, usages=[SERVER]), id="for servers"),
        pytest.param(issue("me", usages=[CLIENT]), id="self-signed"),
        pytest.param(issue("me", issue("other", ca=True), usages=[CLIENT]), id="other authority"),
        pytest.param(issue("me", IMPOSTOR, usages=[CLIENT]), id="authority of the same name"),
        pytest.param(
            issue("me", ROOT, usages=[CLIENT], critical=x509.ObjectIdentifier("1.2.3.4")),
            id="something critical that nobody understands",
        ),
    ],
)
def test_a_wrong_certificate_is_not_believed(leaf):
    assert not believed(leaf)
    assert not believed(leaf, ROOT)
    assert not believed(leaf, IMPOSTOR)


@pytest.mark.parametrize(
    "issuer",
    [
        pytest.param(issue("team", ROOT), id="says nothing"),
        pytest.param(issue("team", ROOT, ca=False), id="says that it is none"),
        pytest.param(issue("team", ROOT, usages=[CLIENT]), id="somebody's own certificate"),
        pytest.param(issue("team", ROOT, ca=True, end=-MINUTE), id="expired"),
        pytest.param(issue("team", ROOT, ca=True, start=HOUR / 2), id="not yet valid"),
        pytest.param(issue("team", ROOT, ca=True, usages=[SERVER]), id="for servers"),
        pytest.param(issue("team", ROOT, ca=True, may="crl_sign"), id="must not sign"),
        pytest.param(issue("team", IMPOSTOR, ca=True), id="of another authority"),
    ],
)
def test_a_wrong_intermediate_leads_nowhere(issuer):
    assert not believed(issue("me", issuer, usages=[CLIENT]), issuer)


def test_a_chain_longer_than_its_authority_allows_is_not_believed():
    last = issue("last", ROOT, ca=True, length=0)
    beyond = issue("beyond", last, ca=True)

    assert believed(issue("me", last, usages=[CLIENT]), last)
    assert not believed(issue("me", beyond, usages=[CLIENT]), beyond, last)


@pytest.mark.parametrize(
    "root",
    [
        pytest.param(issue("old", ca=True, end=-MINUTE), id="expired"),
        pytest.param(issue("old", ca=False), id="no authority"),
    ],
)
def test_an_authority_that_is_none_any_more_signs_nothing(root):
    assert not believed(issue("me", root, usages=[CLIENT]), authorities=(root,))


def test_what_counts_is_the_moment_of_the_request():
    leaf = issue("me", ROOT, usages=[CLIENT])
    later = datetime.now(UTC) + HOUR + MINUTE

    assert client_certificates.verify([leaf.certificate], [ROOT.certificate], later) is None
