"""Certificates that anybody may show cost next to nothing, whatever they are made of."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests import computing
from tests import hostile_certificates as hostile
from tests.certificates import CLIENT, issue
from vnode.kubelet.auth import client_certificates, verdicts
from vnode.kubelet.auth.verdicts import Verdicts
from vnode.runtime.certs import shown_certificates
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.keypairs import Pair

MOMENT = 0.15  # seconds of a processor; what is refused here took one or more
ROOT = issue("kubernetes", ca=True)
SERVER = issue("server")
P521 = ec.generate_private_key(ec.SECP521R1())

Chain = list[x509.Certificate]


def of_one_name(key: Any, count: int, name: str) -> Chain:
    """Return a certificate, and so many issuers, each of which may have signed each."""
    leaf = hostile.certificate("mallory", name, key, key, ca=False)
    return [leaf, *(hostile.certificate(name, name, key, key) for _ in range(count))]


def in_a_circle(key: Any, name: str) -> Chain:
    names = ["a", "b", "c"]
    issuers = [
        hostile.certificate(one, other, key, key)
        for one, other in zip(names, [*names[1:], names[0]], strict=True)
    ]
    leaf = hostile.certificate("mallory", "a", key, key, ca=False)
    return [leaf, *issuers[:2], hostile.certificate("c", name, key, key)]


CHAINS: list[tuple[str, Callable[[], Chain]]] = [
    ("exponent", lambda: of_one_name(hostile.slow_key(), 2, "A")),
    ("exponent, the CA's name", lambda: of_one_name(hostile.slow_key(), 2, "kubernetes")),
    ("many", lambda: of_one_name(P521, 12, "A")),
    ("many, the CA's name", lambda: of_one_name(P521, 12, "kubernetes")),
    ("three", lambda: of_one_name(P521, 3, "A")),
    ("three, the CA's name", lambda: of_one_name(P521, 3, "kubernetes")),
    ("circle", lambda: in_a_circle(P521, "kubernetes")),
    ("largest RSA", lambda: of_one_name(hostile.with_exponent(33), 3, "kubernetes")),
]


@pytest.mark.parametrize("chain", [pytest.param(make, id=name) for name, make in CHAINS])
def test_a_chain_that_leads_nowhere_costs_milliseconds_however_it_is_made(chain) -> None:
    made = chain()
    with computing.within(MOMENT):
        assert client_certificates.verify(made, [ROOT.certificate], datetime.now(UTC)) is None


class Client:
    """A client in memory that shakes hands with a server of the kubelet API."""

    def __init__(self, chain: Chain, key: Any, version: ssl.TLSVersion) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = version
        hostile.show(context, chain, key)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)

    def answer(self, received: bytes) -> bytes:
        """Return what it sends next."""
        self._incoming.write(received)
        with suppress(ssl.SSLWantReadError):
            self._tls.do_handshake()

        return self._outgoing.read()


def shake_hands(client: Client) -> None:
    """Run a handshake, of which the server never computes for long; SSLError if it refuses."""
    context = AskingContext(Pair(SERVER.pem, SERVER.key_pem))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    served = context.wrap_bio(incoming, outgoing, server_side=True)
    is_done = False
    while not is_done:
        incoming.write(client.answer(outgoing.read()))
        with computing.within(MOMENT):
            try:
                served.do_handshake()
                is_done = True
            except ssl.SSLWantReadError:
                pass


VERSIONS = pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])


@VERSIONS
@pytest.mark.parametrize("count", [5, 65])
def test_a_handshake_with_a_long_chain_is_refused_early(count: int, version) -> None:
    key = hostile.slow_key()
    with pytest.raises(ssl.SSLError):
        shake_hands(Client(hostile.long_chain(key, count), key, version))


@VERSIONS
def test_a_handshake_with_a_key_that_takes_long_is_refused(version) -> None:
    key = hostile.slow_key()
    with pytest.raises(ssl.SSLError):
        shake_hands(Client(hostile.long_chain(key, 1), key, version))


@VERSIONS
def test_a_handshake_with_three_issuers_whom_nobody_knows_succeeds(version) -> None:
    shake_hands(Client(hostile.long_chain(P521, 4), P521, version))


def message(certificates: Sequence[bytes], version: int) -> bytes:
    """Return a Certificate message of TLS."""
    after, context = (b"\0\0", b"\0") if version == 0x0304 else (b"", b"")
    entries = b"".join(len(each).to_bytes(3, "big") + each + after for each in certificates)
    content = context + len(entries).to_bytes(3, "big") + entries
    return b"\x0b" + len(content).to_bytes(3, "big") + content


@pytest.mark.parametrize("version", [0x0303, 0x0304])
def test_a_curve_of_ones_own_is_seen_before_it_is_parsed(version: int) -> None:
    good, bad = ROOT.certificate, hostile.on_a_curve_of_ones_own()
    plain = good.public_bytes(serialization.Encoding.DER)

    assert shown_certificates.wrong_with(message([plain] * 4, version), version) == ""
    assert "more than 4" in shown_certificates.wrong_with(message([plain] * 5, version), version)
    with computing.within(MOMENT):
        assert "usual" in shown_certificates.wrong_with(message([plain, bad], version), version)


class Hands:
    """A clock that is moved by hand, and by those who wait."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._start = datetime.now(UTC)

    def monotonic(self) -> float:
        return self.passed

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.passed)

    async def sleep(self, seconds: float) -> None:
        self.passed += seconds


class Judging:
    """Judges requests on connections of one address, and counts what is verified."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, cost: float = 0.0) -> None:
        self.clock = Hands()
        self.authorities: tuple[x509.Certificate, ...] = (ROOT.certificate,)
        self.verdicts = Verdicts(lambda: self.authorities, self.clock)
        self.verified = 0
        self._cpu = 0.0
        verify = client_certificates.verify

        def counted(*arguments: Any) -> x509.Certificate | None:
            self.verified += 1
            self._cpu += cost
            return verify(*arguments)

        monkeypatch.setattr(client_certificates, "verify", counted)
        monkeypatch.setattr(time, "thread_time", lambda: self._cpu)
        monkeypatch.setattr(verdicts, "peer_certificates", lambda shown: shown)

    @staticmethod
    def connection(*shown: x509.Certificate) -> Any:
        """Return a request on a connection of its own; it is the same for all its requests."""
        transport = Transport()
        known = {"peername": ("10.0.0.9", 1), "ssl_object": shown}
        return SimpleNamespace(transport=transport, get_extra_info=known.get)


class Transport:
    """A transport, of which nothing is asked."""


async def test_a_chain_is_judged_once_for_a_connection_and_a_set_of_authorities(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judging = Judging(monkeypatch)
    good, other = issue("me", ROOT, usages=[CLIENT]).certificate, issue("other", ca=True)
    bad = of_one_name(P521, 1, "A")
    known, unknown = judging.connection(good), judging.connection(*bad)
    for _ in range(3):
        assert await judging.verdicts.certificate(known) == good
        assert await judging.verdicts.certificate(unknown) is None

    assert judging.verified == 2
    assert await judging.verdicts.certificate(judging.connection(good)) == good
    assert judging.verified == 2  # a chain that is known to be good

    judging.authorities = (other.certificate,)
    assert await judging.verdicts.certificate(known) is None
    judging.authorities = (ROOT.certificate,)
    assert await judging.verdicts.certificate(known) == good
    judging.clock.passed = 3601
    assert await judging.verdicts.certificate(known) is None  # it has expired


async def test_an_address_has_a_hundredth_of_the_time_for_chains_that_lead_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judging = Judging(monkeypatch, cost=0.01)
    good = issue("me", ROOT, usages=[CLIENT]).certificate
    assert await judging.verdicts.certificate(judging.connection(good)) == good
    for _ in range(1000):
        assert (
            await judging.verdicts.certificate(judging.connection(issue("x").certificate)) is None
        )
        judging.clock.passed += 0.1

    spent = (judging.verified - 1) * 0.01
    assert spent <= verdicts.AT_ONCE + 1.1 * verdicts.SHARE * judging.clock.passed
    before = judging.clock.passed
    assert await judging.verdicts.certificate(judging.connection(good)) == good
    assert judging.clock.passed == before
