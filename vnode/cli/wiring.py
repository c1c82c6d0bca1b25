"""The agent: which parts there are, what each is given, and which of them only the leader runs.

Every replica serves the webhook, the extender and the kubelet API, and is connected to all targets,
so that a new leader starts warm. The leader alone writes: nodes, bindings, chaperons, statuses. The
parts do not know each other; what they share is handed to them here.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from scheduler_plugins import defaults
from vnode import __version__
from vnode.api import keys, kinds, objects
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound, VnodeError
from vnode.api.identity import Identity
from vnode.api.objects import Object, Objects
from vnode.cli.config import AgentConfig
from vnode.cli.serving import announce, kubelet_certificate
from vnode.following import references
from vnode.following.following import Following
from vnode.kube import informer as informers
from vnode.kube.client import Client
from vnode.kube.endpoint import Trust
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.kubelet.server import KubeletServer
from vnode.nodes.controller import NodeController
from vnode.nodes.summary import SummaryWriter
from vnode.pods import chains, chaperon, chaperons, proxy, scheduler
from vnode.pods.books import Books
from vnode.pods.chaperon import Parent
from vnode.pods.chaperons import ChaperonController
from vnode.pods.extender import Extender
from vnode.pods.proxies import ProxyController
from vnode.pods.reservations import Reservations
from vnode.pods.scheduler import ProxyScheduler
from vnode.runtime import holders, issuing, memory, serving
from vnode.runtime.authority import Authority
from vnode.runtime.health import Health
from vnode.runtime.issuing import ClientCertificate, ServingCertificate
from vnode.runtime.leader import AGENT_LEASE, Elector
from vnode.runtime.links import Links
from vnode.runtime.serving import Server
from vnode.runtime.supervisor import Supervisor, supervise
from vnode.runtime.webhook_trust import TrustedWebhook
from vnode.scheduling import registry
from vnode.scheduling.cache import Cache
from vnode.scheduling.queue import SchedulingQueue
from vnode.targets.controller import TargetController
from vnode.targets.sources import SourceController
from vnode.telemetry import metrics
from vnode.webhook.server import Webhook

if TYPE_CHECKING:
    from vnode.cli.dashboard.served import ServedDashboard

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says; all else is in the configuration."""

    namespace: str
    address: str
    config: AgentConfig
    credentials: Path | None
    holder: str


class Deposed(VnodeError):
    """This agent led, lost the lease, and was elected again: make a new one in its place."""


class Agent:
    """One replica of the agent of one cluster."""

    def __init__(self, client: Client, identity: Identity, options: Options) -> None:
        self._client = client
        self._options = options
        self._clock = SystemClock()
        self._led = False
        self._identity = identity
        config = options.config
        parent = Parent(identity.name, identity.uid)
        trim = references.keeping(proxy.trim)
        self._links = Links()
        self._health = Health()
        self._events = EventRecorder(client, "vnode", self._clock)
        self._authority = Authority(client, options.namespace, clock=self._clock)
        self._namespaces = Informer(client, kinds.NAMESPACES, trim=_metadata_only)
        self._proxies = Informer(
            client,
            kinds.PODS,
            field_selector=f"spec.schedulerName={keys.PROXY_SCHEDULER}",
            trim=trim,
            indexes={proxy.NODE_INDEX: proxy.node_of},
        )
        self._chaperons, self._delegates = chaperons.informers(client)
        self._targets = TargetController(
            client,
            identity,
            self._links,
            clock=self._clock,
            trust=Trust(commands=frozenset(config.exec_commands)),
            events=self._events,
        )
        self._kubelet_certificate = kubelet_certificate(
            config.kubelet_certificate, client, self._authority, options.address, self._clock
        )
        self._kubelet = self._make_kubelet()
        self._nodes = self._make_nodes()
        self._kubelet.subscribe(self._nodes.refresh)
        self._kubelet_certificate.subscribe(self._kubelet.renew)
        self._kubelet_certificate.subscribe(self._nodes.refresh_all)
        announce(self._kubelet_certificate, self._nodes.nodes, self._events)
        self._following = self._make_following()
        self._proxy_controller = ProxyController(
            client,
            self._proxies,
            self._links,
            parent,
            target_exists=self._targets.has_node,
            trim=trim,
            bring=self._following.bring,
            events=self._events,
        )
        self._reservations = Reservations(client, self._chaperons)
        self._scheduler, self._books = self._make_scheduler(parent)
        self._health.on_scrape(self._scheduler.count_pending)
        self._health.on_scrape(informers.measure)
        self._dashboard = self._make_dashboard()
        self._extender = Extender(client, self._reservations, self._delegates)
        self._webhook = Webhook(self._namespace_annotations, self._targets.finalizers)

    def _make_dashboard(self) -> ServedDashboard | None:
        if not self._options.config.ports.dashboard:
            return None

        from vnode.cli.dashboard.served import ServedDashboard  # few want it

        return ServedDashboard(
            self._client,
            self._identity.name,
            targets=self._targets.informers,
            nodes=self._nodes.nodes,
            proxies=self._proxies,
            serves_sources=self._options.config.source_controller,
            links=self._links,
            certificate=self._kubelet_certificate,
            agent_namespace=self._options.namespace,
            clock=self._clock,
        )

    def _make_following(self) -> Following:
        return Following(
            self._client,
            self._links,
            self._identity,
            self._options.config.following,
            relabel=lambda own, kept: chaperon.reprefixed(own, chaperon.kept_labels(kept)),
            target_exists=self._targets.has_node,
            complete=self._pods_known_on,
            events=self._events,
            clock=self._clock,
        )

    def _make_nodes(self) -> NodeController:
        return NodeController(
            self._client,
            self._links,
            self._targets,
            advertise_address=self._options.address,
            port_of=self._kubelet.port_of,
            certificate_health=lambda: self._kubelet_certificate.health,
            clock=self._clock,
        )

    def _make_kubelet(self) -> KubeletServer:
        return KubeletServer(
            self._links,
            self._client,
            address=self._options.address,
            certificate=lambda: self._kubelet_certificate.pair,
            find_pod=self._find_pod,
            list_pods=self._pods_on,
            recorded_ports=lambda: self._nodes.ports(),  # noqa: PLW0108 - made after this
            first_port=self._options.config.ports.kubelet,
            clock=self._clock,
        )

    def _make_scheduler(self, parent: Parent) -> tuple[ProxyScheduler, Books]:
        config = self._options.config
        plugins = registry.Registry(defaults.PLUGINS, registry.installed())
        framework = registry.build(
            config.scheduling.profile, plugins, defaults.WEIGHTS, self._clock
        )
        queue = SchedulingQueue(
            self._clock,
            framework.queue_sort.sort_key,
            framework.registrations() | scheduler.REGISTRATIONS,
            pre_enqueue=framework.pre_enqueue,
            settings=config.scheduling.queue.settings(),
        )
        cache = Cache()
        driver = ProxyScheduler(
            self._client,
            self._proxies,
            self._links,
            parent,
            framework=framework,
            queue=queue,
            cache=cache,
            settings=config.candidates,
            allowed=self._reservations.allowed,
            bring=self._following.bring,
            events=self._events,
            clock=self._clock,
        )
        return driver, Books(self._nodes.nodes, self._links, cache, queue)

    async def run(self) -> None:
        """Serve, and lead when it is this replica's turn, until cancelled."""
        metrics.BUILD_INFO.labels(__version__).set(1)
        await self._authority.load()
        async with supervise() as tasks:
            for informer in (self._namespaces, self._proxies, self._chaperons, self._delegates):
                tasks.start(informer.run(), informer.kind.plural)
                self._health.add_event(informer.kind.plural, informer.synced)

            tasks.start(self._targets.watch_targets(), "watch-targets")
            tasks.start(self._authority.run(), "authority")
            self._hand_over_credentials(tasks)
            for server in await self._servers():
                tasks.start(server.run(), server.name)
                self._health.add_event(server.name, server.ready)

            for certificate in self._certificates:
                tasks.start(certificate.run(), "serving-certificate")

            await self._targets.wait_synced()
            await self._proxies.synced.wait()
            memory.settle()
            tasks.start(self._targets.run(), "targets")
            tasks.start(self._nodes.nodes.run(), "nodes")
            await self._nodes.nodes.synced.wait()
            tasks.start(self._kubelet_certificate.run(), "kubelet-certificate")
            tasks.start(self._kubelet.run(), "kubelet")
            if self._dashboard is not None:
                port = self._options.config.ports.dashboard
                tasks.start(self._dashboard.run(self._options.address, port), "dashboard")

            tasks.start(self._events.run(), "events")
            await self._lead_when_elected()

    async def _servers(self) -> list[Server]:
        """The HTTP servers but those of virtual nodes, with their certificates."""
        address, ports = self._options.address, self._options.config.ports
        service = f"vnode.{self._options.namespace}.svc"
        hosts = (address, service, *self._options.config.serving_names)
        webhook = ServingCertificate(self._authority, "webhook", hosts, clock=self._clock)
        extender = ServingCertificate(
            self._authority, "extender", hosts, clients=True, clock=self._clock
        )
        self._certificates = (webhook, extender)
        await self._kubelet_certificate.start()
        binding = web.Application(middlewares=[serving.only(issuing.CLIENT)])
        binding.add_routes(self._extender.routes())
        return [
            Server("health", self._health.app(), address, ports.health),
            Server(
                "webhook",
                self._webhook.app(),
                address,
                ports.webhook,
                ssl_context=await webhook.start(),
            ),
            Server(
                "extender", binding, address, ports.extender, ssl_context=await extender.start()
            ),
        ]

    def _hand_over_credentials(self, tasks: Supervisor) -> None:
        """So that the API server trusts the webhook, and the scheduler can prove who it is."""
        options = self._options
        trusted = TrustedWebhook(self._client, self._authority)
        credentials = ClientCertificate(
            self._client,
            self._authority,
            options.namespace,
            folder=options.credentials,
            clock=self._clock,
        )
        self._health.add_event("webhook-trusted", trusted.trusted)
        self._health.add_event("scheduler-credentials", credentials.written)
        tasks.start(trusted.run(), "webhook-trust")
        tasks.start(credentials.run(), "scheduler-credentials")

    async def _lead_when_elected(self) -> None:
        if not self._options.config.leader_election:
            await self._lead()
            return

        elector = Elector(
            self._client,
            self._options.namespace,
            AGENT_LEASE,
            self._options.holder,
            has_ended=holders.has_ended,
        )
        await elector.run(self._lead)

    async def _lead(self) -> None:
        """Everything that writes. A second term is for another Agent, with nothing half done."""
        if self._led:
            raise Deposed("elected again after the lease was lost: starting anew")

        self._led = True
        self._targets.lead()
        async with supervise() as tasks:
            tasks.start(self._make_summary_writer().run(), "summary")
            if self._options.config.source_controller:
                tasks.start(SourceController(self._client, clock=self._clock).run(), "sources")

            tasks.start(self._nodes.run(), "virtual-nodes")
            tasks.start(self._make_chaperon_controller().run(), "chaperons")
            tasks.start(self._proxy_controller.run(), "proxies")
            tasks.start(self._proxy_controller.bound.run(), "bound-pods")
            self._follow(tasks)
            self._books.open()
            tasks.start(self._scheduler.run(), "scheduler")
            await asyncio.get_running_loop().create_future()

    def _make_summary_writer(self) -> SummaryWriter:
        return SummaryWriter(self._client, clock=self._clock, cluster=self._identity)

    def _follow(self, tasks: Supervisor) -> None:
        """All proxy pods are known (`run` waited), those that others bound are not yet."""
        self._proxies.subscribe(self._following.see)
        self._proxy_controller.bound.subscribe(self._following.see)
        tasks.start(self._following.run(), "following")

    def _pods_known_on(self, node: str) -> bool:
        return self._proxies.synced.is_set() and self._proxy_controller.bound.knows(node)

    def _make_chaperon_controller(self) -> ChaperonController:
        return ChaperonController(
            self._client,
            self._chaperons,
            self._delegates,
            goes_on=lambda chaperon: chains.goes_on(
                chaperon, self._identity.uid, self._targets.keys, self._links
            ),
            clock=self._clock,
        )

    async def _find_pod(self, node: str, namespace: str, name: str) -> Object | None:
        key = objects.join_key(namespace, name)
        pod = self._proxies.store.get(key) or self._proxy_controller.bound.get(key)
        if pod is not None and objects.spec(pod).get("nodeName") == node:
            return pod

        try:
            return await self._client.get(kinds.PODS, name, namespace)
        except NotFound:
            return None

    def _pods_on(self, node: str) -> Objects:
        ours = self._proxies.store.by_index(proxy.NODE_INDEX, node)
        pods = [*ours, *self._proxy_controller.bound.on(node)]
        return [{k: v for k, v in pod.items() if k != references.FIELD} for pod in pods]

    async def _namespace_annotations(self, name: str) -> dict[str, str] | None:
        namespace = self._namespaces.store.get(name)
        return objects.annotations(namespace) if namespace is not None else None


def _metadata_only(obj: Object) -> Object:
    return {"metadata": objects.metadata(obj)}
