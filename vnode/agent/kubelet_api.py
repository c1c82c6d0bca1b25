"""Serves the kubelet API of all virtual nodes, in every replica, with the configured certificate.

The health of the certificate is published by Events on the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnode.agent.parts import Part, Parts
from vnode.agent.shared import AgentOptions, Shared
from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.kube.informer import Informer
from vnode.kubelet import server
from vnode.kubelet.server import KubeletServer
from vnode.nodes import virtual
from vnode.runtime.certs.authority import Authority
from vnode.runtime.certs.csr import SignedCertificate
from vnode.runtime.certs.files import CertificateFiles
from vnode.runtime.certs.issued import ServingCertificate
from vnode.runtime.certs.kubelet_serving import KubeletCertificate, KubeletCertificateConfig, Source
from vnode.runtime.link_health import LinkHealth


class KubeletApi:
    """Serves the virtual nodes of one replica."""

    def __init__(self, shared: Shared, authority: Authority, events: EventRecorder) -> None:
        options = shared.options
        self.certificate = make_certificate(
            options.config.kubelet_certificate,
            shared.client,
            authority,
            options.address,
            shared.clock,
        )
        self._server = KubeletServer(
            shared.links,
            shared.client,
            address=options.address,
            certificate=lambda: self.certificate.pair,
            find_pod=shared.find_pod,
            list_pods=shared.pods_on,
            recorded_ports=lambda: virtual.recorded_ports(
                shared.nodes.store.values(), shared.targets.keys()
            ),
            first_port=options.config.ports.kubelet,
            last_grace=lambda: last_grace(options),
            clock=shared.clock,
        )
        self.certificate.subscribe(self._server.renew)
        announce(self.certificate, shared.nodes, events)

    def port_of(self, node_name: str) -> int | None:
        """Return the port of a virtual node, None while it is not served."""
        return self._server.port_of(node_name)

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed(node_name)` when `port_of` of that node changes. Must not await."""
        self._server.subscribe(changed)

    def parts(self) -> Parts:
        """List what serves, once the certificate is started.

        The virtual nodes must be known before, so that their ports stay.
        """
        return (
            Part("kubelet-certificate", self.certificate.run, needs_servers=True),
            Part("kubelet", self._server.run, needs_servers=True),
        )


def last_grace(options: AgentOptions) -> float:
    """Return how many seconds open streams get when the agent ends.

    After a fault that is at most the default, since the process has to start again soon.
    """
    configured = options.config.stream_grace_period_seconds
    return configured if options.stop_requested.is_set() else min(configured, server.STREAM_GRACE)


def make_certificate(
    settings: KubeletCertificateConfig,
    client: Client,
    authority: Authority,
    address: str,
    clock: Clock,
) -> KubeletCertificate:
    """Make the certificate for virtual nodes at this address."""
    source: Source | None = None
    if settings.signer:
        source = SignedCertificate(client, settings.signer, (address,), clock=clock)
    elif settings.certificate:
        source = CertificateFiles(Path(settings.certificate), Path(settings.key), clock)

    own = ServingCertificate(authority, "kubelet", (address,), clock=clock)
    return KubeletCertificate(own, source, clock)


def announce(certificate: KubeletCertificate, nodes: Informer, events: EventRecorder) -> None:
    """Record an Event on each virtual node whenever the health of the certificate changes.

    A node that is new gets one only if something is wrong.
    """
    announced = ""

    def record(node: Object, health: LinkHealth) -> None:
        about = objects.reference(node, kinds.NODES.kind, kinds.NODES.api_version)
        type_ = NORMAL if health.healthy else WARNING
        events.event(about, type_, f"KubeletCertificate{health.reason}", health.message)

    def on_certificate() -> None:
        nonlocal announced
        health = certificate.health
        if health is not None and health.message != announced:
            announced = health.message
            for node in nodes.store.values():
                record(node, health)

    def on_node(old: Object | None, new: Object | None) -> None:
        health = certificate.health
        if old is not None or new is None:
            return

        if announced and health is not None and not health.healthy:
            record(new, health)

    certificate.subscribe(on_certificate)
    nodes.subscribe(on_node)
