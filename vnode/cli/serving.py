"""The kubelet API's certificate as the configuration wants it, and how people hear of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.kube.store import Store
from vnode.runtime.authority import Authority
from vnode.runtime.certificate_files import CertificateFiles
from vnode.runtime.issuing import ServingCertificate
from vnode.runtime.kubelet_certificate import KubeletCertificate, Settings, Source
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


def announcer(
    certificate: KubeletCertificate, nodes: Store, events: EventRecorder
) -> Callable[[], None]:
    """Makes an Event on each virtual node when the health of the certificate has turned."""
    told = ""

    def tell() -> None:
        nonlocal told
        health = certificate.health
        if health is None or health.message == told:
            return

        told = health.message
        for node in nodes.values():
            about = objects.reference(node, kinds.NODES.kind, kinds.NODES.api_version)
            type_ = NORMAL if health.healthy else WARNING
            events.event(about, type_, f"KubeletCertificate{health.reason}", health.message)

    return tell
