"""A webhook that is served by a test, behind a real API server."""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from tests import kit
from tests.permitted import MANIFESTS
from vnode.api import errors, keys, kinds, objects, webhook_paths
from vnode.api.clock import SystemClock
from vnode.kube.client import Client
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.certs.webhook_bundle import TrustedWebhook
from vnode.runtime.serving import Server
from vnode.webhook import server

CONFIGURATION: Final = "webhook-test"
FINALIZERS: Final = [keys.PREFIX + "c2", keys.PREFIX + "webhook-c3"]


def own_address(api_server: str) -> str:
    """Return the address of this machine that the API server reaches it by."""
    host, port = api_server.removeprefix("https://").rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))
        return str(probe.getsockname()[0])


def configuration(url: str, namespace: str, policy: str) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION},
        "webhooks": [
            {
                "name": "pods.vnode.dev",
                "clientConfig": {"url": url},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "reinvocationPolicy": policy,
                "admissionReviewVersions": ["v1", "v1beta1"],
            }
        ],
    }


@asynccontextmanager
async def serving_webhook(client: Client, reinvocation: str) -> AsyncIterator[str]:
    """Yield a namespace whose pods go through a webhook that is served here."""
    name = f"webhook-{secrets.token_hex(4)}"
    await client.create(kinds.NAMESPACES, {"metadata": {"name": name}})
    await client.apply(kinds.SERVICE_ACCOUNTS, {"metadata": {"name": "default", "namespace": name}})

    async def annotations(wanted: str) -> Mapping[str, str] | None:
        return objects.annotations(await client.get(kinds.NAMESPACES, wanted))

    address = own_address(client.endpoint.url)
    source = Authority(client, name)
    await source.load()
    certificate = ServingCertificate(source, "webhook", (address,))
    webhook = server.Webhook(annotations, lambda _namespace: FINALIZERS, MANIFESTS)
    listener = Server("webhook", webhook.app(), address, 0, ssl_context=await certificate.start())
    ready, done = asyncio.Event(), asyncio.Event()

    async def serve() -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(listener.run())]
            await listener.ready.wait()
            url = f"https://{address}:{listener.port}{webhook_paths.PODS}"
            await client.create(kinds.MUTATING_WEBHOOKS, configuration(url, name, reinvocation))
            keeper = TrustedWebhook(client, source, lambda: bytes(32), SystemClock(), CONFIGURATION)
            tasks.append(group.create_task(keeper.run()))
            await keeper.trusted.wait()
            ready.set()
            await done.wait()
            for task in tasks:
                task.cancel()

    serving = asyncio.create_task(serve())
    try:
        async with asyncio.timeout(kit.PATIENCE):
            await ready.wait()
            await until_called(client, name)

        yield name
    finally:
        done.set()
        await serving
        await client.delete(kinds.MUTATING_WEBHOOKS, CONFIGURATION)
        await client.delete(kinds.NAMESPACES, name)


async def until_called(client: Client, namespace: str) -> None:
    """Try until the API server calls our webhook: it reads webhook configurations with a delay."""
    while True:
        try:
            pod = await dry_run(client, namespace)
        except errors.ServerError:
            pod = {}

        if keys.HAS_FINALIZER in objects.labels(pod):
            return

        await asyncio.sleep(0.1)


async def dry_run(client: Client, namespace: str) -> objects.Object:
    body = {**kit.pod("probe"), "apiVersion": "v1", "kind": "Pod"}
    answer: objects.Object = await client.request(
        "POST", kinds.PODS.path(namespace), query={"dryRun": "All"}, body=body
    )
    return answer


@pytest.fixture
async def webhook_client(bare_fleet: kit.Fleet) -> AsyncIterator[Client]:
    """Yield an administrator's client of the cluster whose API server calls the webhook."""
    async with bare_fleet.client("c1") as client:
        yield client


@pytest.fixture(params=["Never", "IfNeeded"])
async def webhook_namespace(
    webhook_client: Client, request: pytest.FixtureRequest
) -> AsyncIterator[str]:
    """Yield a namespace whose pods go through a webhook that is served here."""
    async with serving_webhook(webhook_client, request.param) as name:
        yield name
