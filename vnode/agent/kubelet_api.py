"""The kubelet API of all virtual nodes, in every replica, and its certificate.

The certificate is what the configuration wants; people hear of its health by Events on the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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
from vnode.runtime.links import LinkHealth
from vnode.runtime.supervisor import Supervisor


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
        """The port of a virtual node, None while it is not served."""
        return self._server.port_of(node_name)

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed(node_name)` when `port_of` of that node changes. Must not await."""
        self._server.subscribe(changed)

    async def start(self, tasks: Supervisor) -> None:
        """Serve from now on; virtual nodes must be known, whose ports are not to change."""
        await self.certificate.start()
        tasks.start(self.certificate.run(), "kubelet-certificate")
        tasks.start(self._server.run(), "kubelet")


def last_grace(options: AgentOptions) -> float:
    """Seconds that open streams get at the end; after a fault not longer than by default.

    What ends by a fault is to be started again soon.
    """
    configured = options.config.stream_grace_period_seconds
    return configured if options.told_to_end.is_set() else min(configured, server.STREAM_GRACE)


def make_certificate(
    settings: KubeletCertificateConfig,
    client: Client,
    authority: Authority,
    address: str,
    clock: Clock,
) -> KubeletCertificate:
    """The certificate for virtual nodes at this address."""
    source: Source | None = None
    if settings.signer:
        source = SignedCertificate(client, settings.signer, (address,), clock=clock)
    elif settings.certificate:
        source = CertificateFiles(Path(settings.certificate), Path(settings.key), clock)

    own = ServingCertificate(authority, "kubelet", (address,), clock=clock)
    return KubeletCertificate(own, source, clock)


def announce(certificate: KubeletCertificate, nodes: Informer, events: EventRecorder) -> None:
    """Make an Event on each virtual node whenever the health of the certificate has turned.

    A node that is new hears only of what is wrong.
    """
    told = ""

    def tell(node: Object, health: LinkHealth) -> None:
        about = objects.reference(node, kinds.NODES.kind, kinds.NODES.api_version)
        type_ = NORMAL if health.healthy else WARNING
        events.event(about, type_, f"KubeletCertificate{health.reason}", health.message)

    def turned() -> None:
        nonlocal told
        health = certificate.health
        if health is not None and health.message != told:
            told = health.message
            for node in nodes.store.values():
                tell(node, health)

    def seen(old: Object | None, new: Object | None) -> None:
        health = certificate.health
        if old is None and new is not None and health is not None and told and not health.healthy:
            tell(new, health)

    certificate.subscribe(turned)
    nodes.subscribe(seen)
