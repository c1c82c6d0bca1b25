"""Serves a target's API server at other addresses, and with another certificate authority.

The kubeconfig of its Target leads there once `put` has written one of them.
"""

from __future__ import annotations

import asyncio
import base64
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from hack.fleetlib import addresses, certificates
from hack.fleetlib.certificates import CertificateAuthority
from hack.fleetlib.fleet import LocalFleet
from tests.faults.fault_profile import Fate, RequestHead
from tests.faults.proxy import FaultProxy, ProxiedServer, showing
from tests.kit import Fleet
from vnode.api import kinds
from vnode.cli import kubeconfigs
from vnode.cli.kubeconfigs import ClusterEndpoint
from vnode.kube.client import Client


class OtherAddress(FaultProxy):
    """Serves the API server at a further address; `is_watched` is set once a watch comes there."""

    def __init__(self, name: str, upstream: ProxiedServer) -> None:
        super().__init__(name, upstream, random.Random(1))
        self.is_watched = asyncio.Event()

    def fate(self, request: RequestHead) -> Fate | int:
        """Note a watch."""
        if request.is_watch:
            self.is_watched.set()

        return super().fate(request)


@dataclass(frozen=True, slots=True)
class OtherAuthority(ProxiedServer):
    """The same API server, behind an address whose certificate is of another authority."""

    authority: CertificateAuthority = field(
        default_factory=lambda: certificates.authority("another")
    )

    def serving(self, host: str) -> ssl.SSLContext:
        # Of another name than the authority, or it would pass for self-signed.
        return showing(self.authority.server("kube-apiserver", [host]))


@dataclass(frozen=True, slots=True)
class OtherWay:
    """What leads to an address."""

    endpoint: ClusterEndpoint
    address: OtherAddress


@asynccontextmanager
async def serving(
    fleet: Fleet, cluster: str, present: ClusterEndpoint
) -> AsyncIterator[list[OtherWay]]:
    """Serve a cluster by another address, and by one more with another authority.

    Yields ways there, in the order in which an authority is replaced: both are trusted first, then
    the new one alone.
    """
    site = LocalFleet(fleet.folder)
    place = site.site(cluster)
    where = (place.address, addresses.API_SERVER, place.folder / "pki")
    other = OtherAuthority(*where)
    first, second = OtherAddress("address", ProxiedServer(*where)), OtherAddress("authority", other)
    host = site.state().plan.host
    servers = [await address.start(host) for address in (first, second)]
    trusted = other.authority.pair.certificate_pem
    both = (present.authority or b"") + trusted
    try:
        yield [
            OtherWay(replace(present, server=servers[0]), first),
            OtherWay(replace(present, server=servers[0], authority=both), first),
            OtherWay(replace(present, server=servers[1], authority=both), second),
            OtherWay(replace(present, server=servers[1], authority=trusted), second),
        ]
    finally:
        for address in (first, second):
            await address.close()


async def put(source: Client, secret: str, endpoint: ClusterEndpoint, token: str) -> None:
    """Write a kubeconfig into the Secret of a Target of namespace default."""
    text = kubeconfigs.build(endpoint, token, "default")
    data = {"config": base64.b64encode(text).decode()}
    await source.patch(kinds.SECRETS, secret, {"data": data}, "default")
