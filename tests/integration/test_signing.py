"""Serving certificates from a real signer: that of kube-controller-manager, which kubelets use.

The agent's part runs with exactly the rights that `vnode install` gives.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests import background, certificates, kit
from tests.integration.kubelets import with_token
from tests.kit import Fleet
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound
from vnode.kube.client import Client
from vnode.runtime.certs import keypairs
from vnode.runtime.certs.csr import SignedCertificate

SIGNER = "kubernetes.io/kubelet-serving"
ADDRESS = "192.0.2.7"
APPROVER = "vnode-certificate-approver"


class Running:
    """A certificate that is kept, and a way to wait for what becomes of it."""

    def __init__(self, certificate: SignedCertificate) -> None:
        self.certificate = certificate
        self._changed = asyncio.Event()

    def stir(self) -> None:
        self._changed.set()

    async def until(self, condition: Callable[[SignedCertificate], bool]) -> None:
        async with asyncio.timeout(kit.PATIENCE):
            while not condition(self.certificate):
                self._changed.clear()
                await self._changed.wait()

    async def until_it_says(self, reason: str) -> str:
        await self.until(lambda certificate: certificate.health.reason == reason)
        return self.certificate.health.message


class Shifted(SystemClock):
    """A clock that can be put forward."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


@pytest.fixture
async def agent(fleet: Fleet, client: Client) -> AsyncIterator[Client]:
    """Yield a client that uses the service account of the agent."""
    review = await client.create(
        kinds.SERVICE_ACCOUNTS,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        "vnode",
        name="vnode",
        subresource="token",
    )
    where = with_token(client.endpoint, review["status"]["token"])
    async with Client(where, name="c1") as limited:
        yield limited


@pytest.fixture
async def approving(client: Client) -> AsyncIterator[None]:
    """Let the agent approve its own requests until the test ends."""
    await client.apply(
        kinds.CLUSTER_ROLE_BINDINGS,
        {
            "metadata": {"name": APPROVER},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": APPROVER,
            },
            "subjects": [{"kind": "ServiceAccount", "name": "vnode", "namespace": "vnode"}],
        },
    )
    yield
    await client.delete(kinds.CLUSTER_ROLE_BINDINGS, APPROVER)


@asynccontextmanager
async def kept(
    agent: Client, signer: str = SIGNER, clock: SystemClock | None = None
) -> AsyncIterator[Running]:
    certificate = SignedCertificate(
        agent, signer, (ADDRESS,), clock=clock or SystemClock(), chance=lambda: 0.5
    )
    running = Running(certificate)
    async with background.running(certificate.run(running.stir)):
        yield running


def named(message: str) -> str:
    """Return the request that a message tells of."""
    return next(word for word in message.split() if word.startswith("vnode-kubelet-"))


async def test_a_request_that_the_agent_may_approve_is_signed(
    fleet: Fleet, agent: Client, approving: None
):
    async with kept(agent) as running:
        await running.until(lambda certificate: certificate.health.healthy)
        pair = running.certificate.pair

    assert pair is not None
    keypairs.check_pair(pair)
    shown = pair.x509
    ca = certificates.load(
        fleet.folder / "c1" / "pki" / "ca.crt", fleet.folder / "c1" / "pki" / "ca.key"
    )
    shown.verify_directly_issued_by(ca.certificate)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == [ADDRESS]
    usage = shown.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.SERVER_AUTH]
    groups = shown.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["system:nodes"]


async def test_the_command_that_is_told_is_what_is_needed(fleet: Fleet, agent: Client):
    async with kept(agent) as running:
        message = await running.until_it_says("NotApproved")
        assert running.certificate.pair is None
        command = message.partition("run: kubectl ")[2].partition(";")[0]

        fleet.kubectl("c1", *command.split())

        await running.until_it_says("Issued")
        assert running.certificate.pair is not None


async def test_a_denied_request_says_how_to_ask_again(fleet: Fleet, agent: Client):
    async with kept(agent) as running:
        first = named(await running.until_it_says("NotApproved"))
        fleet.kubectl("c1", "certificate", "deny", first)
        message = await running.until_it_says("RequestDenied")
        command = message.partition("request again: kubectl ")[2].partition(";")[0]

        fleet.kubectl("c1", *command.split())

        second = named(await running.until_it_says("NotApproved"))
        assert second != first


async def test_a_signer_that_is_not_there_is_named(fleet: Fleet, agent: Client):
    async with kept(agent, "example.com/nobody") as running:
        request = named(await running.until_it_says("NotApproved"))
        fleet.kubectl("c1", "certificate", "approve", request)

        message = await running.until_it_says("NotSigned")

    assert "example.com/nobody has not signed it yet" in message


async def test_it_is_renewed_before_it_ends(client: Client, agent: Client, approving: None):
    clock = Shifted()
    async with kept(agent, clock=clock) as running:
        await running.until(lambda certificate: certificate.pair is not None)
        first, message = running.certificate.pair, running.certificate.health.message
        assert first is not None
        start, end = first.x509.not_valid_before_utc, first.x509.not_valid_after_utc

        clock.ahead = (end - start) * 0.79
        await touch(client, named(message))
        clock.ahead = (end - start) * 0.81
        await touch(client, named(message))
        await running.until(lambda certificate: certificate.pair != first)
        assert running.certificate.health.healthy


async def touch(client: Client, name: str) -> None:
    """Wake whoever watches this request."""
    note = {"metadata": {"annotations": {"touched": os.urandom(4).hex()}}}
    await client.patch(kinds.CSRS, name, note)


async def test_a_renewal_that_waits_says_until_when_there_is_time(
    fleet: Fleet, client: Client, agent: Client
):
    clock = Shifted()
    async with kept(agent, clock=clock) as running:
        request = named(await running.until_it_says("NotApproved"))
        fleet.kubectl("c1", "certificate", "approve", request)
        await running.until_it_says("Issued")
        pair = running.certificate.pair
        assert pair is not None
        end = pair.x509.not_valid_after_utc

        clock.ahead = (end - pair.x509.not_valid_before_utc) * 0.81
        await touch(client, request)
        message = await running.until_it_says("NotApproved")

        assert f"the present certificate ends at {objects.timestamp(end)}" in message
        assert running.certificate.pair == pair


async def test_without_rights_it_says_what_gives_them(fleet: Fleet, client: Client):
    with suppress(NotFound):
        await client.delete(kinds.SERVICE_ACCOUNTS, "nobody", "default")

    await client.create(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "nobody"}}, "default")
    review = await client.create(
        kinds.SERVICE_ACCOUNTS,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        "default",
        name="nobody",
        subresource="token",
    )
    where = with_token(client.endpoint, review["status"]["token"])
    async with Client(where, name="c1") as powerless, kept(powerless) as running:
        message = await running.until_it_says("NotAllowed")

    assert "run vnode install" in message
