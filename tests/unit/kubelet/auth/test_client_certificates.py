"""Which client certificates are believed: each way to be wrong is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from tests.papers import ANY, CLIENT, HOUR, SERVER, Paper, paper
from vnode.kubelet.auth import client_certificates

ROOT = paper("kubernetes", ca=True)
MINUTE = timedelta(minutes=1)


def believed(*shown: Paper, authorities: tuple[Paper, ...] = (ROOT,)) -> bool:
    found = client_certificates.verify(
        [one.certificate for one in shown],
        [one.certificate for one in authorities],
        datetime.now(UTC),
    )
    assert found is None or found == shown[0].certificate
    return found is not None


@pytest.mark.parametrize("usages", [[CLIENT], [SERVER, CLIENT], [ANY], []], ids=str)
def test_a_certificate_of_the_authority_is_believed(usages):
    assert believed(paper("me", ROOT, usages=usages))


def test_an_intermediate_that_is_shown_leads_to_the_authority():
    intermediate = paper("team", ROOT, ca=True)
    leaf = paper("me", intermediate, usages=[CLIENT])

    assert believed(leaf, intermediate)
    assert believed(leaf, paper("unrelated"), intermediate)
    assert not believed(leaf)


def test_an_intermediate_can_be_the_authority():
    intermediate = paper("team", ROOT, ca=True)

    assert believed(paper("me", intermediate, usages=[CLIENT]), authorities=(intermediate,))
    assert not believed(paper("me", ROOT, usages=[CLIENT]), authorities=(intermediate,))


def test_any_of_several_authorities_will_do():
    other = paper("other", ca=True)

    assert believed(paper("me", ROOT, usages=[CLIENT]), authorities=(other, ROOT))
    assert believed(paper("me", other, usages=[CLIENT]), authorities=(other, ROOT))


def test_nobody_is_believed_without_certificate_or_authority():
    assert not believed()
    assert not believed(paper("me", ROOT, usages=[CLIENT]), authorities=())


IMPOSTOR = paper("kubernetes", ca=True)  # of the same name, with another key


@pytest.mark.parametrize(
    "leaf",
    [
        pytest.param(paper("me", ROOT, usages=[CLIENT], end=-MINUTE), id="expired"),
        pytest.param(paper("me", ROOT, usages=[CLIENT], start=HOUR / 2), id="not yet valid"),
        pytest.param(paper("me", ROOT, usages=[SERVER]), id="for servers"),
        pytest.param(paper("me", usages=[CLIENT]), id="self-signed"),
        pytest.param(paper("me", paper("other", ca=True), usages=[CLIENT]), id="other authority"),
        pytest.param(paper("me", IMPOSTOR, usages=[CLIENT]), id="authority of the same name"),
        pytest.param(
            paper("me", ROOT, usages=[CLIENT], critical=x509.ObjectIdentifier("1.2.3.4")),
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
        pytest.param(paper("team", ROOT), id="says nothing"),
        pytest.param(paper("team", ROOT, ca=False), id="says that it is none"),
        pytest.param(paper("team", ROOT, usages=[CLIENT]), id="somebody's own certificate"),
        pytest.param(paper("team", ROOT, ca=True, end=-MINUTE), id="expired"),
        pytest.param(paper("team", ROOT, ca=True, start=HOUR / 2), id="not yet valid"),
        pytest.param(paper("team", ROOT, ca=True, usages=[SERVER]), id="for servers"),
        pytest.param(paper("team", ROOT, ca=True, may="crl_sign"), id="must not sign"),
        pytest.param(paper("team", IMPOSTOR, ca=True), id="of another authority"),
    ],
)
def test_a_wrong_intermediate_leads_nowhere(issuer):
    assert not believed(paper("me", issuer, usages=[CLIENT]), issuer)


def test_a_chain_longer_than_its_authority_allows_is_not_believed():
    last = paper("last", ROOT, ca=True, length=0)
    beyond = paper("beyond", last, ca=True)

    assert believed(paper("me", last, usages=[CLIENT]), last)
    assert not believed(paper("me", beyond, usages=[CLIENT]), beyond, last)


@pytest.mark.parametrize(
    "root",
    [
        pytest.param(paper("old", ca=True, end=-MINUTE), id="expired"),
        pytest.param(paper("old", ca=False), id="no authority"),
    ],
)
def test_an_authority_that_is_none_any_more_signs_nothing(root):
    assert not believed(paper("me", root, usages=[CLIENT]), authorities=(root,))


def test_what_counts_is_the_moment_of_the_request():
    leaf = paper("me", ROOT, usages=[CLIENT])
    later = datetime.now(UTC) + HOUR + MINUTE

    assert client_certificates.verify([leaf.certificate], [ROOT.certificate], later) is None
