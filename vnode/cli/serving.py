"""The kubelet API's certificate as the configuration wants it, and how people hear of it."""

from __future__ import annotations

from pathlib import Path

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.kube.informer import Informer
from vnode.runtime.authority import Authority
from vnode.runtime.certificate_files import CertificateFiles
from vnode.runtime.issuing import ServingCertificate
from vnode.runtime.kubelet_certificate import KubeletCertificate, Settings, Source
from vnode.runtime.links import Health
from vnode.runtime.signing import SignedCertificate


def kubelet_certificate(
    settings: Settings, client: Client, authority: Authority, address: str, clock: Clock
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

    def tell(node: Object, health: Health) -> None:
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
