"""Runs one term: everything that only the leader does, which is everything that writes.

It is made when this replica becomes the leader, from what all replicas share, and cancelled when
the Lease is lost. A second term is another Term, so that nothing is done in it that was decided in
the first from outdated state: queues, caches and plugins are new. The caller has its subscriptions
end with it (`vnode.api.listeners.subscription_scope`).
"""

from __future__ import annotations

from scheduler_plugins import defaults
from vnode.agent.config import AgentConfig
from vnode.agent.kubelet_api import KubeletApi
from vnode.agent.shared import Shared, trim_pod
from vnode.api import renaming
from vnode.api.objects import Object
from vnode.following.following import Following
from vnode.kube.events import EventRecorder
from vnode.nodes.controller import NodeController
from vnode.nodes.summary import SummaryWriter
from vnode.overrides.reporting import PolicyReporter
from vnode.placement.moves.controller import Moves
from vnode.placement.moves.rebalances import Rebalances
from vnode.placement.status_controller import PolicyStatusController
from vnode.pods import chains
from vnode.pods.source import quota_events, scheduler
from vnode.pods.source.binding import Binder
from vnode.pods.source.candidate_phase import CandidatePhase
from vnode.pods.source.candidate_requests import CandidateRequests
from vnode.pods.source.delegate_events import DelegateEventReporter
from vnode.pods.source.deletion_costs import DeletionCosts
from vnode.pods.source.event_handlers import EventHandlers
from vnode.pods.source.orphans import OrphanController
from vnode.pods.source.placeholders import Placeholders
from vnode.pods.source.preemption_chooser import PreemptionChooser
from vnode.pods.source.proxy_controller import ProxyController
from vnode.pods.source.scheduler import ProxyScheduler
from vnode.pods.source.stale_finalizers import StaleFinalizers
from vnode.pods.target.chaperon_controller import ChaperonController
from vnode.runtime.supervisor import Supervisor, sleep_forever, supervise
from vnode.scheduling import registry
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.queue import SchedulingQueue
from vnode.targets.sources import SourceController
from vnode.telemetry import metrics


def make_framework(config: AgentConfig, handle: Handle) -> Framework:
    """Make the plugins of the configured profile; ConfigError if that is not possible."""
    plugins = registry.Registry(defaults.PLUGINS, registry.installed())
    return registry.build(
        config.scheduling.profile,
        plugins,
        defaults.WEIGHTS,
        handle,
    )


class Term:
    """One term of this replica as the leader."""

    def __init__(self, shared: Shared, kubelet: KubeletApi) -> None:
        self._shared = shared
        self._kubelet = kubelet
        self._events = EventRecorder(shared.client, "vnode", shared.clock)
        self._following = self._make_following()
        self._proxies = self._make_proxies()
        self._nodes = self._make_nodes()
        self._cache = Cache()
        self._framework = make_framework(shared.options.config, self._make_handle())
        self._placeholders = self._make_placeholders()
        self._scheduler, self._event_handlers = self._make_scheduler()
        self._moves = self._make_moves()
        self._placeholders.openings.subscribe(self._moves.look_at)

    async def run(self) -> None:
        """Lead until cancelled; proxy pods and Targets must be known."""
        shared, bound = self._shared, self._proxies.bound
        await shared.namespaces.synced.wait()
        with shared.including(bound):
            async with supervise() as tasks:
                tasks.start(self._events.run(), "events-of-leader")
                tasks.start(shared.connections.lead(self._events), "target-reports")
                tasks.start(self._make_summary_writer().run(), "summary")
                if shared.options.config.source_controller:
                    sources = SourceController(shared.client, clock=shared.clock)
                    tasks.start(sources.run(), "sources")

                tasks.start(self._nodes.run(), "virtual-nodes")
                tasks.start(self._make_chaperons().run(), "chaperons")
                tasks.start(self._proxies.run(), "proxies")
                tasks.start(bound.run(), "bound-pods")
                tasks.start(self._make_delegate_events().run(), "delegate-events")
                tasks.start(self._make_orphans().run(), "orphans")
                tasks.start(
                    StaleFinalizers(shared.client, shared.proxies, shared.targets).run(),
                    "finalizers",
                )
                tasks.start(self._make_policy_reporter().run(), "override-policies")
                self._follow(tasks)
                await self._keep_plans(tasks)
                rebalances = Rebalances(
                    shared.client, self._moves, events=self._events, clock=shared.clock
                )
                tasks.start(rebalances.run(), "rebalances")
                await self._schedule(tasks)

    async def _keep_plans(self, tasks: Supervisor) -> None:
        """Start what keeps pods to placement policies; return once all of these are known."""
        tasks.start(self._make_policy_status().run(), "placement-status")
        # Else pods would be placed as if there were none.
        await self._shared.policies.wait_known()
        tasks.start(self._make_deletion_costs().run(), "deletion-costs")
        tasks.start(self._placeholders.run(), "placeholders")
        tasks.start(self._moves.run(), "moves")

    def _follow(self, tasks: Supervisor) -> None:
        """Start Following; proxy pods are known by now, those that others bound are not yet."""
        for pods in (self._shared.proxies, self._proxies.bound):
            pods.subscribe(self._following.on_pod)
            pods.subscribe(self._shared.overrides.failures.on_pod)

        tasks.start(self._following.run(), "following")

    async def _schedule(self, tasks: Supervisor) -> None:
        self._event_handlers.open()
        self._shared.health.on_scrape(self._scheduler.count_pending)
        tasks.start(self._scheduler.run(), "scheduler")
        try:
            await sleep_forever()
        finally:
            metrics.PENDING_PODS.clear()  # the next leader counts its own

    def _make_policy_reporter(self) -> PolicyReporter:
        shared = self._shared
        return PolicyReporter(shared.client, shared.overrides, self._events, shared.clock)

    def _make_summary_writer(self) -> SummaryWriter:
        shared = self._shared
        return SummaryWriter(shared.client, clock=shared.clock, cluster=shared.identity)

    def _make_following(self) -> Following:
        shared = self._shared
        return Following(
            shared.client,
            shared.links,
            shared.identity,
            shared.options.config.following,
            relabel=lambda own, kept: renaming.renamed(own, renaming.kept_labels(kept)),
            target_exists=shared.targets.has_node,
            complete=self._pods_known_on,
            introduced=shared.overrides.introduced,
            find_pod=self._pod,
            enabled_namespaces=shared.enabled_namespaces,
            events=self._events,
            clock=shared.clock,
        )

    def _pod(self, key: str) -> Object | None:
        return self._shared.proxies.store.get(key) or self._proxies.bound.get(key)

    def _pods_known_on(self, node: str) -> bool:
        return self._shared.proxies.synced.is_set() and self._proxies.bound.has_synced(node)

    def _make_proxies(self) -> ProxyController:
        shared = self._shared
        return ProxyController(
            shared.client,
            shared.proxies,
            shared.links,
            shared.identity,
            manifests=shared.manifests,
            enabled_namespaces=shared.enabled_namespaces,
            target_exists=shared.targets.has_node,
            trim=trim_pod,
            bring=self._following.ensure,
            events=self._events,
            clock=shared.clock,
            overrides=shared.overrides,
        )

    def _make_delegate_events(self) -> DelegateEventReporter:
        shared, bound = self._shared, self._proxies.bound
        reporter = DelegateEventReporter(
            shared.client,
            shared.links,
            self._pod,
            mode=shared.options.config.delegate_events,
            clock=shared.clock,
        )
        shared.proxies.subscribe(reporter.on_pod)
        bound.subscribe(reporter.on_pod)
        return reporter

    def _make_policy_status(self) -> PolicyStatusController:
        shared = self._shared
        return PolicyStatusController(
            shared.client,
            shared.policies,
            shared.proxies,
            self._proxies.bound,
            shared.nodes,
            shared.links,
            events=self._events,
            clock=shared.clock,
            weights=lambda policy, key: self._cache.workloads.weights(key, policy.group_by),
        )

    def _make_orphans(self) -> OrphanController:
        shared = self._shared
        targets = shared.targets
        return OrphanController(
            shared.client, shared.proxies, shared.links, targets.informers, targets.cluster
        )

    def _make_nodes(self) -> NodeController:
        shared, kubelet = self._shared, self._kubelet
        nodes = NodeController(
            shared.client,
            shared.nodes,
            shared.links,
            shared.targets,
            advertise_address=shared.options.address,
            port_of=kubelet.port_of,
            certificate_health=lambda: kubelet.certificate.health,
            clock=shared.clock,
        )
        kubelet.subscribe(nodes.refresh)
        kubelet.certificate.subscribe(nodes.refresh_all)
        return nodes

    def _make_chaperons(self) -> ChaperonController:
        shared = self._shared
        return ChaperonController(
            shared.client,
            shared.chaperons,
            shared.delegates,
            goes_on=lambda chaperon: chains.goes_on(
                chaperon, shared.identity.uid, shared.targets.fitting, shared.links
            ),
            clock=shared.clock,
            delegate_events=shared.options.config.delegate_events,
        )

    def _make_deletion_costs(self) -> DeletionCosts:
        shared = self._shared
        return DeletionCosts(
            shared.client,
            shared.proxies,
            shared.nodes,
            self._cache,
            shared.policies,
            shared.clock,
        )

    def _make_placeholders(self) -> Placeholders:
        shared = self._shared
        return Placeholders(
            shared.client,
            shared.proxies,
            shared.nodes,
            shared.links,
            self._cache,
            shared.policies,
            shared.clock,
        )

    def _make_moves(self) -> Moves:
        shared = self._shared
        return Moves(
            shared.client,
            shared.proxies,
            shared.nodes,
            shared.links,
            self._cache,
            self._framework.takers,
            shared.policies,
            events=self._events,
            clock=shared.clock,
            placeholders=self._placeholders.openings,
        )

    def _make_handle(self) -> Handle:
        shared = self._shared
        return Handle(
            namespace_refusal=shared.enabled_namespaces.refusal,
            is_charged=lambda pod, node: quota_events.is_charged(shared.links, pod, node),
            policies=shared.policies,
            candidates=shared.links.candidates_of,
            clock=shared.clock,
        )

    def _make_scheduler(self) -> tuple[ProxyScheduler, EventHandlers]:
        shared, config = self._shared, self._shared.options.config
        framework = self._framework
        queue = SchedulingQueue(
            shared.clock,
            framework.queue_sort.sort_key,
            framework.registrations() | scheduler.REGISTRATIONS,
            pre_enqueue=framework.pre_enqueue,
            settings=config.scheduling.queue.settings(),
        )
        shared.overrides.subscribe(lambda _key: queue.move(ClusterEvent(EventKind.OVERRIDES)))
        cache = self._cache
        event_handlers = EventHandlers(
            shared.nodes, shared.enabled_namespaces, shared.links, cache, queue
        )
        event_handlers.follow(shared.policies)
        assumptions = Assumptions(framework, cache, queue, shared.clock)
        requests = CandidateRequests(
            shared.identity,
            shared.manifests,
            self._following.ensure,
            shared.clock,
            overrides=shared.overrides,
        )
        candidate_phase = CandidatePhase(
            shared.client,
            shared.links,
            requests,
            assumptions,
            settings=config.candidates,
            lookup=shared.proxies.store.get,
            renew=self._following.renew,
            clock=shared.clock,
        )
        binder = Binder(
            shared.client,
            shared.links,
            framework,
            lookup=shared.proxies.store.get,
            allowed=shared.reservations.allowed,
            clock=shared.clock,
        )
        driver = ProxyScheduler(
            shared.client,
            shared.proxies,
            shared.links,
            framework=framework,
            queue=queue,
            cache=cache,
            assumptions=assumptions,
            candidate_phase=candidate_phase,
            binder=binder,
            preemption=PreemptionChooser(
                shared.client,
                shared.links,
                requests,
                lookup=self._pod,
                events=self._events,
            ),
            unconnected=event_handlers.unconnected,
            events=self._events,
            clock=shared.clock,
        )
        return driver, event_handlers
