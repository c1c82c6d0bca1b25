"""Which certificate virtual nodes show, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests import background
from tests.certificates import HOUR, issue
from vnode.api.errors import ConfigError
from vnode.runtime.certs import csr
from vnode.runtime.certs.files import CertificateFiles
from vnode.runtime.certs.keypairs import Pair
from vnode.runtime.certs.kubelet_serving import KubeletCertificate, KubeletCertificateConfig
from vnode.runtime.link_health import LinkHealth

NOW = datetime.now(UTC)
OWN = Pair(issue("own").pem, issue("own").key_pem)


class Steps:
    """A clock whose sleeps end one by one."""

    def __init__(self) -> None:
        self.time = NOW
        self.asleep = asyncio.Event()
        self._over = asyncio.Event()
        self.slept = 0.0

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        self.slept = seconds
        self.asleep.set()
        await self._over.wait()
        self._over.clear()

    async def turn(self) -> None:
        """End this sleep and wait for the next."""
        self.asleep.clear()
        self._over.set()
        await self.asleep.wait()


class Own:
    """The certificate of the agents' CA."""

    pair = OWN

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []

    def on_renewal(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)


class Elsewhere:
    """A source that has what a test gives it."""

    pair: Pair | None = None
    health = LinkHealth(False, "NotYet", "", NOW)


def pair(end: timedelta = HOUR) -> Pair:
    made = issue("served", end=end)
    return Pair(made.pem, made.key_pem)


def test_the_agents_own_is_shown_until_there_is_a_better_one_and_after_that_has_ended():
    clock, source = Steps(), Elsewhere()
    certificate = KubeletCertificate(Own(), source, clock)
    assert certificate.pair == OWN

    source.pair = better = pair()
    assert certificate.pair == better

    clock.time += 2 * HOUR
    assert certificate.pair == OWN


def test_without_a_source_nothing_is_said():
    assert KubeletCertificate(Own(), None, Steps()).health is None


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (KubeletCertificateConfig(certificate="a"), "name both"),
        (KubeletCertificateConfig(key="a"), "name both"),
        (KubeletCertificateConfig(signer="a/b", certificate="a", key="b"), "not both"),
        (KubeletCertificateConfig(signer="kubelet-serving"), "is not a signer's name"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    settings: KubeletCertificateConfig, complaint: str
):
    with pytest.raises(ConfigError, match=complaint):
        settings.check()


@pytest.mark.parametrize(
    "settings",
    [
        KubeletCertificateConfig(),
        KubeletCertificateConfig(signer="a/b"),
        KubeletCertificateConfig(certificate="a", key="b"),
    ],
)
def test_settings_that_go_together_are_taken(settings: KubeletCertificateConfig):
    settings.check()


async def test_files_are_followed(tmp_path: Path):
    clock, changes = Steps(), []
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    files = CertificateFiles(certificate, key, clock)
    following = files.run(lambda: changes.append(files.health.reason))
    async with background.running(following), asyncio.timeout(10):
        await clock.asleep.wait()
        assert files.pair is None
        assert "cannot read" in files.health.message
        assert str(certificate) in files.health.message

        first, second = pair(), pair()
        certificate.write_bytes(first.certificate)
        key.write_bytes(first.key)
        await clock.turn()
        assert files.pair == first
        assert files.health.healthy

        certificate.write_bytes(second.certificate)
        await clock.turn()
        assert files.pair == first
        assert not files.health.healthy
        assert "does not match the certificate" in files.health.message

        key.write_bytes(second.key)
        await clock.turn()
        assert files.pair == second

        clock.time += 2 * HOUR
        await clock.turn()
        assert files.health.reason == "Expired"
        assert "replace it" in files.health.message

    assert changes == ["BadFile", "FromFile", "BadFile", "FromFile", "Expired"]


def condition(type_: str, **fields: str) -> dict[str, object]:
    return {
        "metadata": {"name": "csr"},
        "status": {"conditions": [{"type": type_, "status": "True", **fields}]},
    }


@pytest.mark.parametrize(
    ("request_", "reason", "words"),
    [
        ({"metadata": {"name": "csr"}}, "NotApproved", "kubectl certificate approve csr"),
        (condition("Approved"), "NotSigned", "a/b has not signed it yet"),
        (condition("Denied", message="no!"), "RequestDenied", "(no!)"),
        (condition("Denied"), "RequestDenied", "no reason given"),
        (condition("Failed", reason="Bad"), "SignerFailed", "(Bad)"),
    ],
)
def test_what_became_of_a_request_is_told_in_words(request_, reason: str, words: str):
    verdict = csr.judge(request_, "a/b")

    assert verdict.reason == reason
    assert words in verdict.message
    assert verdict.approvable == (reason == "NotApproved")
    assert not verdict.certificate


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "::1"])
def test_a_request_has_a_name_that_the_api_server_takes(address: str):
    name = csr.build(address, "a/b", b"", "x")["metadata"]["generateName"]

    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
