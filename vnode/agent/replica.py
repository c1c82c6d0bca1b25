"""Runs one replica of the agent: what every replica does, in order.

Every replica serves the webhook, the extender and the kubelet API, and is connected to all targets,
so that a new leader starts warm. None of that depends on who leads: a replica that gets the Lease
begins a `Term`, and one that loses it ends that, while all else continues.

An agent that is asked to end gives up the Lease first, so that another replica leads and points the
virtual nodes to itself. Then it waits for the streams that are open here; webhook and extender are
served meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode import __version__
from vnode.agent import servers
from vnode.agent.kubelet_api import KubeletApi
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
from vnode.telemetry import metrics

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
        handle = Handle(namespace_refusal=self._shared.enabled_namespaces.refusal)
        make_framework(options.config, handle)  # fail at the start for a bad profile
        self._authority = Authority(client, options.namespace, clock=self._shared.clock)
        self._events = EventRecorder(client, "vnode", self._shared.clock)
        self._kubelet = KubeletApi(self._shared, self._authority, self._events)
        self._shared.health.on_scrape(informers.measure)

    async def run(self) -> None:
        """Serve, and lead whenever this replica has the Lease, until cancelled."""
        metrics.BUILD_INFO.labels(__version__).set(1)
        for load in (self._authority.load, self._shared.manifest_key.load):
            await startup.wait_for_answer(load, self._shared.clock)

        async with supervise() as tasks:
            self._shared.start(tasks)
            tasks.start(self._authority.run(), "authority")
            tasks.start(self._shared.manifest_key.run(), "manifest-key")
            await servers.start(self._shared, self._authority, tasks)
            await self._shared.targets.wait_synced()
            await self._shared.proxies.synced.wait()
            memory.freeze()
            await self._shared.connect(tasks)
            tasks.start(self._events.run(), "events")
            # Open streams need the connections to targets, so the kubelet API ends before them.
            async with supervise() as kubelet_tasks:
                await self._kubelet.start(kubelet_tasks)
                self._start_dashboard(tasks)
                self._shared.health.remove(STARTING)
                await self._lead_when_elected()

    def _start_dashboard(self, tasks: Supervisor) -> None:
        shared, options = self._shared, self._shared.options
        if not options.config.ports.dashboard:
            return

        from vnode.agent.dashboard import ServedDashboard  # imported only where it is served

        dashboard = ServedDashboard(shared, self._kubelet.certificate)
        shared.health.add_event(dashboard.server.name, dashboard.server.ready)
        tasks.start(dashboard.run(), dashboard.server.name)

    async def _lead_when_elected(self) -> None:
        options = self._shared.options
        if not options.config.leader_election:
            await self._lead()
            return

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

        await election.lead(self._connect, elect, self._lead)

    async def _lead(self) -> None:
        """Run one term; its subscriptions end with it, since what it listens to lives on."""
        with subscription_scope():
            await Term(self._shared, self._kubelet).run()
