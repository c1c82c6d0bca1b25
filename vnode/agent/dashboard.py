"""Serves the dashboard of an agent: its stores, behind `vnode.dashboard.auth`, on its own port.

It shows the certificate of the kubelet API, since the same callers connect in the same way.
"""

from __future__ import annotations

from vnode.api import kinds
from vnode.api.clock import Clock
from vnode.dashboard.auth import PATH, AuthMiddleware
from vnode.dashboard.live_model import LiveModel, Stores
from vnode.dashboard.site import Site
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.kubelet.auth.tls import OptionalClientCertContext
from vnode.runtime.certs.kubelet_serving import KubeletCertificate
from vnode.runtime.links import Links
from vnode.runtime.serving import Server
from vnode.runtime.supervisor import supervise

_GRACE = 1.0  # seconds that open streams get at the end


class ServedDashboard:
    """Runs beside the other servers of an agent. The certificate must be started before."""

    def __init__(
        self,
        client: Client,
        cluster: str,
        *,
        targets: tuple[Informer, ...],
        nodes: Informer,
        proxies: Informer,
        policies: tuple[Informer, ...],
        overrides: tuple[Informer, ...],
        serves_sources: bool,
        links: Links,
        certificate: KubeletCertificate,
        agent_namespace: str,
        address: str,
        port: int,
        clock: Clock,
    ) -> None:
        self._auth = AuthMiddleware(client, clock)
        source_kinds = (kinds.SOURCES, kinds.CLUSTER_SOURCES) if serves_sources else ()
        self._sources = tuple(Informer(client, kind) for kind in source_kinds)
        stores = Stores(targets, self._sources, nodes, proxies.store.values, policies, overrides)
        self._live_model = LiveModel(
            client, cluster, stores, links, agent_namespace=agent_namespace, clock=clock
        )
        proxies.subscribe(self._live_model.on_pod)
        context = OptionalClientCertContext(certificate.pair)
        certificate.subscribe(lambda: context.set_certificate(certificate.pair))
        app = Site(self._live_model, PATH).app([self._auth.middleware])
        self.server = Server(
            "dashboard",
            app,
            address,
            port,
            ssl_context=context,
            grace=_GRACE,
            authenticates=True,
        )

    async def run(self) -> None:
        """Serve until cancelled."""
        async with supervise() as tasks:
            for informer in self._sources:
                tasks.start(informer.run(), f"dashboard-{informer.kind.plural}")

            tasks.start(self._auth.run(), "dashboard-client-ca")
            await self.server.run()
