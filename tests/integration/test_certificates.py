"""The agents' CA on a real API server: made once, shared, repaired, trusted by the API server."""

from __future__ import annotations

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import kit
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.kube.client import Client
from vnode.runtime.certs import authority, issued, keypairs
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ClientCertificate, ServingCertificate
from vnode.runtime.certs.webhook_bundle import TrustedWebhook


@pytest.fixture
async def client(bare_fleet: kit.Fleet) -> AsyncIterator[Client]:
    async with bare_fleet.client("c1") as client:
        yield client


@pytest.fixture
async def namespace(client: Client) -> str:
    name = f"certificates-{secrets.token_hex(4)}"
    await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    return name


async def test_agents_that_race_have_one_ca(client: Client, namespace: str) -> None:
    agents = [Authority(client, namespace) for _ in range(4)]
    async with asyncio.TaskGroup() as group:
        for agent in agents:
            group.create_task(agent.load())

    assert len({agent.bundle for agent in agents}) == 1
    pair = await agents[0].issue(keypairs.CertificateRequest("x"))
    assert agents[3].trusts(pair.x509)


async def test_a_deleted_ca_is_made_again_and_everything_follows(
    client: Client, namespace: str, tmp_path: Path
) -> None:
    source = Authority(client, namespace)
    await source.load()
    serving = ServingCertificate(source, "webhook", ("127.0.0.1",))
    await serving.start()
    handed = ClientCertificate(client, source, namespace, folder=tmp_path)
    old = source.bundle
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(part.run()) for part in (source, serving, handed)]
        await handed.written.wait()
        assert (tmp_path / "ca.crt").read_bytes() == old
        changed = asyncio.Event()
        source.subscribe(changed.set)
        await client.delete(kinds.SECRETS, authority.SECRET, namespace)
        async with asyncio.timeout(kit.PATIENCE):
            await changed.wait()

        assert source.bundle != old
        encoded = base64.b64encode(source.bundle).decode()
        await kit.until_one(
            client,
            kinds.SECRETS,
            issued.CLIENT,
            namespace,
            lambda secret: secret["data"]["ca.crt"] == encoded,
        )
        for task in tasks:
            task.cancel()


async def test_a_deleted_or_damaged_client_certificate_is_made_again(
    client: Client, namespace: str
) -> None:
    source = Authority(client, namespace)
    await source.load()
    handed = ClientCertificate(client, source, namespace)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(handed.run())
        await handed.written.wait()
        first = await client.get(kinds.SECRETS, issued.CLIENT, namespace)
        await client.delete(kinds.SECRETS, issued.CLIENT, namespace)
        second = await kit.until_one(
            client,
            kinds.SECRETS,
            issued.CLIENT,
            namespace,
            lambda secret: objects.uid(secret) != objects.uid(first),
        )
        await client.patch(kinds.SECRETS, issued.CLIENT, {"data": {"tls.key": ""}}, namespace)
        await kit.until_one(
            client,
            kinds.SECRETS,
            issued.CLIENT,
            namespace,
            lambda secret: bool(secret["data"]["tls.key"]) and secret["data"] != second["data"],
        )
        task.cancel()


async def test_a_wiped_ca_bundle_is_repaired(client: Client, namespace: str) -> None:
    source = Authority(client, namespace)
    await source.load()
    webhook = {
        "name": "a.vnode.dev",
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "objectSelector": {"matchLabels": {"never": "there"}},
    }
    name = namespace
    await client.create(
        kinds.MUTATING_WEBHOOKS,
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook, {**webhook, "name": "b.vnode.dev"}],
        },
    )
    encoded = base64.b64encode(source.bundle).decode()

    def repaired(configuration: objects.Object) -> bool:
        return all(
            entry["clientConfig"].get("caBundle") == encoded for entry in configuration["webhooks"]
        )

    keeper = TrustedWebhook(client, source, lambda: bytes(32), SystemClock(), name)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(keeper.run())
        await keeper.trusted.wait()
        await client.request(
            "PATCH",
            kinds.MUTATING_WEBHOOKS.path(None, name),
            body=[{"op": "remove", "path": "/webhooks/1/clientConfig/caBundle"}],
            content_type="application/json-patch+json",
        )
        await kit.until_one(client, kinds.MUTATING_WEBHOOKS, name, "", repaired)
        task.cancel()

    await client.delete(kinds.MUTATING_WEBHOOKS, name)
