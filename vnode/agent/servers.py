"""Starts the extender, and the process of the webhook, before anything else of an agent.

With them it publishes what their callers need: the CA in the webhook configuration, and the
candidate scheduler's client certificate.
"""

from __future__ import annotations

import msgspec

from vnode.agent.admission import AdmissionSettings
from vnode.agent.admission_reports import AdmissionReports
from vnode.agent.shared import Shared
from vnode.pods.target.extender import Extender
from vnode.pods.target.stream_server import StreamPages
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.issued import ClientCertificate, ServingCertificate
from vnode.runtime.certs.webhook_bundle import TrustedWebhook
from vnode.runtime.child_process import ChildProcess
from vnode.runtime.serving import Server
from vnode.runtime.supervisor import Supervisor


async def start(shared: Shared, authority: Authority, tasks: Supervisor) -> None:
    """Start both, and renew the extender's certificate; the authority must be loaded."""
    _publish_credentials(shared, authority, tasks)
    options, health = shared.options, shared.health
    address, ports = options.address, options.config.ports
    hosts = (address, f"vnode.{options.namespace}.svc", *options.config.serving_names)
    for_extender = ServingCertificate(
        authority, "extender", hosts, clients=True, clock=shared.clock
    )
    extender = Extender(
        shared.client, shared.reservations, shared.delegates, authority.trusts, shared.clock
    ).app()
    server = Server(
        "extender",
        extender,
        address,
        ports.extender,
        ssl_context=await for_extender.start(),
        authenticates=True,
    )
    admission = _admission(shared)
    parts: list[Server | ChildProcess] = [server, admission]
    parts += await _streams(shared, authority, hosts, tasks)
    for part in parts:
        tasks.start(part.run(), part.name)
        health.add_event(part.name, part.ready)

    tasks.start(for_extender.run(), "serving-certificate")


async def _streams(
    shared: Shared, authority: Authority, hosts: tuple[str, ...], tasks: Supervisor
) -> list[Server]:
    """Make the server for streams of sources, if there is to be one."""
    options = shared.options
    if not options.config.ports.streams:
        return []

    certificate = ServingCertificate(authority, "streams", hosts, clock=shared.clock)
    pages = StreamPages(shared.streams, options.holder)
    server = Server(
        "streams",
        pages.app(),
        options.address,
        options.config.ports.streams,
        ssl_context=await certificate.start(),
        authorizes_later=True,
    )
    pages.on_known = server.connections.on_authorized
    tasks.start(certificate.run(), "streams-certificate")
    return [server]


def _admission(shared: Shared) -> ChildProcess:
    """Make the process that serves the webhook."""
    options = shared.options
    settings = AdmissionSettings(
        options.namespace,
        options.address,
        options.config.ports.webhook,
        options.config.serving_names,
        options.config.trust_unsigned_manifests,
        options.config.targets_per_namespace,
        options.config.issuing,
        options.config.audit_log,
        options.config.namespaces,
    )
    return ChildProcess(
        "webhook",
        options.admission_command,
        msgspec.json.encode(settings),
        AdmissionReports().take,
        shared.clock,
    )


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
