"""Fixtures of AuthTokenRequests: kinds, rights and webhook, as an operator installs them.

Leaders have the rights that an operator binds to the agent, in both clusters, and no more.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import web

from tests import background, kit
from tests.fleets import SOURCE, TARGET
from tests.integration.issuing import AUTHORS, JOBS, Issuing, grant
from tests.integration.served_webhook import own_address
from tests.kit import Fleet
from tests.rights import bind, holder
from vnode.api import kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import Denied, NotFound, ServerError
from vnode.cli import manifests
from vnode.issuing import rights
from vnode.issuing.config import IssuingConfig
from vnode.kube.client import Client
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.certs.webhook_bundle import TrustedWebhook
from vnode.runtime.serving import Server
from vnode.webhook.authors import AuthorWebhook


async def made(fleet: Fleet, cluster: str, client: Client, namespace: str, name: str) -> Client:
    """Return a client with a token of a service account, which is made if it is not there."""
    account = {"metadata": {"name": name, "namespace": namespace}}
    await client.apply(kinds.SERVICE_ACCOUNTS, account)
    return await holder(fleet, cluster, client, namespace, name)


async def install(source: Client, target: Client) -> None:
    """Install kinds and rights, as an operator does."""
    for obj in manifests.everything("vnode", manifests.webhook("vnode"))[:-1]:
        await source.apply(manifests.kind_of(obj), obj)

    for obj in manifests.rbac("vnode"):
        if objects.name(obj) == "vnode-issuing-target":
            await target.apply(manifests.kind_of(obj), obj)


@asynccontextmanager
async def served(source: Client, agent: Client, namespace: str) -> AsyncIterator[None]:
    """Serve the webhook, as installed, with the rights of the agent."""
    address, authority = own_address(source.endpoint.url), Authority(source, namespace)
    await authority.load()
    certificate = ServingCertificate(authority, "webhook", (address,))
    app = web.Application()
    refusal = rights.refusal(agent, IssuingConfig(enabled=True))
    app.add_routes(AuthorWebhook(AUTHORS, refusal).routes())
    listener = Server("webhook", app, address, 0, ssl_context=await certificate.start())
    async with background.running(listener.run()):
        await listener.ready.wait()
        hook = manifests.webhook("vnode", f"https://{address}:{listener.port}")
        hook["webhooks"] = [each for each in hook["webhooks"] if each["name"].startswith("authors")]
        await source.apply(kinds.MUTATING_WEBHOOKS, hook)
        keeper = TrustedWebhook(source, authority, lambda: bytes(32), SystemClock())
        try:
            async with background.running(keeper.run()):
                await keeper.trusted.wait()
                yield
        finally:
            await source.delete(kinds.MUTATING_WEBHOOKS, "vnode")


async def until_called(env: Issuing) -> None:
    """Try until the webhook refuses.

    The API server reads kinds, rights and webhooks with a delay.
    """
    async with asyncio.timeout(kit.PATIENCE):
        while True:
            try:
                made = await env.request(env.alice, "probe")
            except Denied as error:
                if "may not issue" in str(error):
                    return
            except (ServerError, NotFound):
                pass
            else:
                await env.source.delete(
                    kinds.AUTH_TOKEN_REQUESTS, objects.name(made), env.namespace
                )

            await asyncio.sleep(0.1)


@pytest.fixture
async def unled(kubelet_fleet: Fleet) -> AsyncIterator[Issuing]:
    """Yield a namespace in which the webhook is served, and alice may create requests.

    Nobody carries the requests out yet.
    """
    fleet, name = kubelet_fleet, f"issue-{uuid.uuid4().hex[:8]}"
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(fleet.client(SOURCE))
        target = await stack.enter_async_context(fleet.client(TARGET))
        await install(source, target)
        for client in (source, target):
            await kit.new_namespace(client, name)

        agent, remote, alice = [
            await stack.enter_async_context(await made(fleet, *account))
            for account in (
                (SOURCE, source, "vnode", "vnode"),
                (TARGET, target, name, "c1"),
                (SOURCE, source, name, "alice"),
            )
        ]
        env = Issuing(fleet, source, target, agent, remote, alice, name)
        for role in ("vnode-issuing", "vnode-issued-secrets"):
            await bind(source, f"{name}-{role}", role)

        await bind(target, name, "vnode-issuing-target", name, "c1")
        await grant(target, f"{name}-jobs", JOBS, name, "c1")
        await source.create(
            kinds.CLUSTER_TARGETS, {"metadata": {"name": name}, "spec": {"self": True}}
        )
        await stack.enter_async_context(served(source, agent, name))
        requests = [
            {"apiGroups": ["vnode.dev"], "resources": ["authtokenrequests"], "verbs": ["*"]}
        ]
        await env.allow_alice(requests)
        await until_called(env)
        yield env
        async with env.leading():
            for left in await source.list(kinds.AUTH_TOKEN_REQUESTS, name):
                await source.delete(kinds.AUTH_TOKEN_REQUESTS, objects.name(left), name)

            await kit.until_gone(source, kinds.AUTH_TOKEN_REQUESTS, name)

        await source.delete(kinds.CLUSTER_TARGETS, name)


@pytest.fixture
async def issuing(unled: Issuing) -> AsyncIterator[Issuing]:
    """Yield a namespace in which a leader carries out requests."""
    async with unled.leading():
        yield unled
