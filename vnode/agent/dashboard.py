"""Serves the dashboard of an agent: its stores, behind `vnode.dashboard.auth`, on its own port.

It shows the certificate of the kubelet API, since the same callers connect in the same way.
"""

from __future__ import annotations

from vnode.agent.shared import Shared
from vnode.api import kinds
from vnode.dashboard.auth import PATH, AuthMiddleware
from vnode.dashboard.live_model import LiveModel, Stores
from vnode.dashboard.site import Site
from vnode.kube.informer import Informer
from vnode.runtime.certs.asked_clients import AskingContext
from vnode.runtime.certs.kubelet_serving import KubeletCertificate
from vnode.runtime.serving import Server
from vnode.runtime.supervisor import supervise

_GRACE = 1.0  # seconds that open streams get at the end


class ServedDashboard:
    """Runs beside the other servers of an agent. The certificate must be started before."""

    def __init__(self, shared: Shared, certificate: KubeletCertificate) -> None:
        options = shared.options
        self._auth = AuthMiddleware(shared.client, shared.clock)
        source_kinds = (kinds.SOURCES, kinds.CLUSTER_SOURCES)
        served = source_kinds if options.config.source_controller else ()
        self._sources = tuple(Informer(shared.client, kind) for kind in served)
        self._live_model = LiveModel(
            shared.client,
            shared.identity.name,
            self._make_stores(shared),
            shared.links,
            agent_namespace=options.namespace,
            clock=shared.clock,
        )
        shared.proxies.subscribe(self._live_model.on_pod)
        context = AskingContext(certificate.pair)
        certificate.subscribe(lambda: context.set_certificate(certificate.pair))
        app = Site(self._live_model, PATH).app([self._auth.middleware])
        self.server = Server(
            "dashboard",
            app,
            options.address,
            options.config.ports.dashboard,
            ssl_context=context,
            grace=_GRACE,
            authenticates=True,
        )

    def _make_stores(self, shared: Shared) -> Stores:
        return Stores(
            shared.targets.informers,
            self._sources,
            shared.nodes,
            shared.proxies.store.values,
            shared.policies.informers,
            shared.overrides.informers,
        )

    async def run(self) -> None:
        """Serve until cancelled."""
        async with supervise() as tasks:
            for informer in self._sources:
                tasks.start(informer.run(), f"dashboard-{informer.kind.plural}")

            tasks.start(self._auth.run(), "dashboard-client-ca")
            await self.server.run()
