"""Runs one replica of the agent: what every replica does, in order.

Every replica serves the webhook, the extender and the kubelet API, and is connected to all targets,
so that a new leader starts warm. None of that depends on who leads: a replica that gets the Lease
begins a `Term`, and one that loses it ends that, while all else continues.

An agent that is asked to end gives up the Lease first, so that another replica leads and points the
virtual nodes to itself. Then it waits for the streams that are open here; webhook and extender are
served meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final

from vnode import __version__
from vnode.agent import parts, servers
from vnode.agent.kubelet_api import KubeletApi
from vnode.agent.parts import AwaitedStep, Part, Parts
from vnode.agent.proxy_scheduling import make_framework
from vnode.agent.shared import AgentOptions, Shared
from vnode.agent.term import Term
from vnode.api.identity import Identity
from vnode.api.listeners import subscription_scope
from vnode.kube import informer as informers
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.runtime import election, lease_identity, memory, startup
from vnode.runtime.certs.authority import Authority
from vnode.runtime.health import ProcessHealth
from vnode.runtime.leader import AGENT_LEASE, Elector
from vnode.runtime.supervisor import Supervisor, supervise
from vnode.scheduling.plugin import Handle
from vnode.telemetry import metrics, turn_waits

STARTING: Final = "starting"
"""The health check that fails until all others are registered."""


class Agent:
    """One replica of the agent of one cluster. The pages of `health` are served already.

    `connect` makes another client of the cluster, for the election: in its thread, with credentials
    that no other loop refreshes.
    """

    def __init__(
        self,
        client: Client,
        identity: Identity,
        options: AgentOptions,
        health: ProcessHealth,
        connect: Callable[[], Client],
    ) -> None:
        self._connect = connect
        self._shared = Shared(client, identity, options, health)
        self._known = asyncio.Event()  # what stays as it is for long has been read
        handle = Handle(namespace_refusal=self._shared.enabled_namespaces.refusal)
        make_framework(options.config, handle)  # fail at the start for a bad profile
        self._authority = Authority(client, options.namespace, clock=self._shared.clock)
        self._events = EventRecorder(client, "vnode", self._shared.clock)
        self._kubelet = KubeletApi(self._shared, self._authority, self._events)
        self._shared.health.on_scrape(informers.measure)
        self._shared.health.on_scrape(turn_waits.measure)

    async def run(self) -> None:
        """Serve, and lead whenever this replica has the Lease, until cancelled."""
        metrics.BUILD_INFO.labels(__version__).set(1)
        async with supervise() as tasks:
            await parts.start(self.parts(), tasks)
            # Open streams need the connections to targets, so the kubelet API ends before them.
            async with supervise() as kubelet_tasks:
                await parts.start(self.kubelet_parts(), kubelet_tasks)
                self._shared.health.remove(STARTING)
                await self._lead_when_elected()

    def parts(self) -> Parts:
        """List what every replica runs, in the order in which it is started."""
        shared, authority, kubelet = self._shared, self._authority, self._kubelet
        has_dashboard = bool(shared.options.config.ports.dashboard)
        return (
            Part("memory", self._keep_memory, needs_servers=True),
            self._loading("authority-loaded", authority.load, needs_servers=True),
            self._loading("manifest-key-loaded", shared.manifest_key.load),
            *shared.watches(),
            Part("authority", authority.run, needs_servers=True),
            Part("manifest-key", shared.manifest_key.run),
            AwaitedStep("servers", partial(servers.start, shared, authority), needs_servers=True),
            AwaitedStep("targets-known", lambda _tasks: shared.targets.wait_synced()),
            AwaitedStep("proxies-known", lambda _tasks: shared.proxies.synced.wait()),
            AwaitedStep("memory-frozen", self._freeze_memory),
            *shared.connecting(),
            Part("events", self._events.run),
            Part("ended-streams-of-sources", shared.streams.ended.run),
            Part("spans", self._send_spans, shared.options.spans is not None, needs_servers=True),
            AwaitedStep(
                "kubelet-certified", lambda _tasks: kubelet.certificate.start(), needs_servers=True
            ),
            AwaitedStep("dashboard", self._start_dashboard, when=has_dashboard, needs_servers=True),
        )

    def _send_spans(self) -> Coroutine[Any, Any, None]:
        shared = self._shared
        sender = shared.options.spans
        assert sender is not None
        return sender.run(
            {
                "service.name": "vnode",
                "service.version": __version__,
                "service.instance.id": shared.options.holder,
                "k8s.cluster.name": shared.identity.name,
                "k8s.cluster.uid": shared.identity.uid,
            }
        )

    def kubelet_parts(self) -> Parts:
        """List what serves the kubelet API, after all of `parts`."""
        return self._kubelet.parts()

    def _loading(
        self, name: str, load: Callable[[], Awaitable[None]], *, needs_servers: bool = False
    ) -> AwaitedStep:
        def wait(_tasks: Supervisor) -> Awaitable[None]:
            return startup.wait_for_answer(load, self._shared.clock)

        return AwaitedStep(name, wait, needs_servers=needs_servers)

    async def _freeze_memory(self, _tasks: Supervisor) -> None:
        memory.freeze()
        self._known.set()

    async def _keep_memory(self) -> None:
        await memory.resume_collecting(self._shared.clock, self._known)
        await memory.give_back(self._shared.clock)

    async def _start_dashboard(self, tasks: Supervisor) -> None:
        from vnode.agent.dashboard import ServedDashboard  # imported only where it is served

        dashboard = ServedDashboard(self._shared, self._kubelet.certificate)
        self._shared.health.add_event(dashboard.server.name, dashboard.server.ready)
        tasks.start(dashboard.run(), dashboard.server.name)

    async def _lead_when_elected(self) -> None:
        options = self._shared.options

        def elect(client: Client, may_renew: Callable[[], bool]) -> Elector:
            return Elector(
                client,
                options.namespace,
                AGENT_LEASE,
                options.holder,
                timing=options.config.lease,
                has_ended=lease_identity.has_ended,
                may_renew=may_renew,
            )

        await election.lead(
            self._connect,
            elect if options.config.leader_election else None,
            self._lead,
            self._shared.node_leases.run,
        )

    async def _lead(self) -> None:
        """Run one term; its subscriptions end with it, since what it listens to lives on."""
        with subscription_scope():
            await self.make_term().run()

    def make_term(self) -> Term:
        """Make what this replica runs while it leads."""
        return Term(self._shared, self._kubelet)
