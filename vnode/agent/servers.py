"""Starts the webhook and the extender, before anything else of an agent.

With them it publishes what their callers need: the CA in the webhook configuration, and the
candidate scheduler's client certificate.
"""

from __future__ import annotations

from vnode.agent.shared import Shared
from vnode.issuing import rights
from vnode.pods.target.extender import Extender
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ClientCertificate, ServingCertificate
from vnode.runtime.certs.webhook_bundle import TrustedWebhook
from vnode.runtime.serving import Server
from vnode.runtime.supervisor import Supervisor
from vnode.webhook.authors import AuthorWebhook
from vnode.webhook.paths import ServedPaths
from vnode.webhook.server import LIMITS, Webhook


async def start(shared: Shared, authority: Authority, tasks: Supervisor) -> None:
    """Start both servers and renew their certificates; the authority must be loaded."""
    _publish_credentials(shared, authority, tasks)
    options, health = shared.options, shared.health
    address, ports = options.address, options.config.ports
    hosts = (address, f"vnode.{options.namespace}.svc", *options.config.serving_names)
    for_webhook = ServingCertificate(authority, "webhook", hosts, clock=shared.clock)
    for_extender = ServingCertificate(
        authority, "extender", hosts, clients=True, clock=shared.clock
    )
    webhook = Webhook(
        shared.namespace_annotations,
        shared.targets.finalizers,
        shared.manifests,
        shared.policies,
    ).app()
    AuthorWebhook(shared.authors, rights.refusal(shared.client, options.config.issuing)).add_to(
        webhook
    )
    extender = Extender(
        shared.client, shared.reservations, shared.delegates, authority.trusts, shared.clock
    ).app()
    paths = ServedPaths(shared.client, lambda: shared.manifest_key.key, shared.clock)
    tasks.start(paths.run(), "webhook-paths")
    servers = (
        Server(
            "webhook",
            webhook,
            address,
            ports.webhook,
            ssl_context=await for_webhook.start(),
            limits=LIMITS,
            serves=paths.are_served,
        ),
        Server(
            "extender",
            extender,
            address,
            ports.extender,
            ssl_context=await for_extender.start(),
            authenticates=True,
        ),
    )
    for server in servers:
        tasks.start(server.run(), server.name)
        health.add_event(server.name, server.ready)

    for certificate in (for_webhook, for_extender):
        tasks.start(certificate.run(), "serving-certificate")


def _publish_credentials(shared: Shared, authority: Authority, tasks: Supervisor) -> None:
    """Publish the webhook's CA to the API server, and the scheduler's client certificate."""
    trusted = TrustedWebhook(
        shared.client, authority, lambda: shared.manifest_key.key, shared.clock
    )
    credentials = ClientCertificate(
        shared.client,
        authority,
        shared.options.namespace,
        folder=shared.options.credentials,
        clock=shared.clock,
    )
    shared.health.add_event("webhook-trusted", trusted.trusted)
    shared.health.add_event("scheduler-credentials", credentials.written)
    tasks.start(trusted.run(), "webhook-trust")
    tasks.start(credentials.run(), "scheduler-credentials")
