"""Runs one term: everything that only the leader does, which is everything that writes.

It is made when this replica becomes the leader, from what all replicas share, and cancelled when
the Lease is lost. A second term is another Term, so that nothing is done in it that was decided in
the first from outdated state: queues, caches and plugins are new. The caller has its subscriptions
end with it (`vnode.api.listeners.subscription_scope`).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from vnode.agent import kueue_checks, multikueue, parts, published_scores, virtual_nodes
from vnode.agent.kubelet_api import KubeletApi
from vnode.agent.parts import AwaitedStep, Part, Parts
from vnode.agent.placement_controllers import PlacementControllers
from vnode.agent.proxy_scheduling import ProxyScheduling
from vnode.agent.shared import Shared, trim_pod
from vnode.agent.target_side import TargetSide
from vnode.api import renaming
from vnode.api.objects import Object
from vnode.following.following import Following
from vnode.gangs.table import Gangs
from vnode.issuing.controller import TokenIssuing
from vnode.kube.events import EventRecorder
from vnode.nodes.coexistence import Coexistence
from vnode.overrides.reporting import PolicyReporter
from vnode.pods import stream_messages
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.delegate_events import DelegateEventReporter
from vnode.pods.source.orphans import OrphanController
from vnode.pods.source.pod_groups import PodGroups
from vnode.pods.source.proxy_controller import ProxyController
from vnode.pods.source.proxy_spans import ProxySpans
from vnode.pods.source.stale_finalizers import StaleFinalizers
from vnode.pods.source.target_streams import TargetStreams
from vnode.pods.target.delegate_spans import DelegateSpans
from vnode.runtime.lasting_rights import LastingRights
from vnode.runtime.link import Link
from vnode.runtime.supervisor import Supervisor, sleep_forever, supervise
from vnode.scheduling.cache import Cache
from vnode.targetsets.controller import TargetSets
from vnode.telemetry import metrics


class Term:
    """One term of this replica as the leader."""

    def __init__(self, shared: Shared, kubelet: KubeletApi) -> None:
        self._shared = shared
        self._kubelet = kubelet
        self._events = EventRecorder(shared.client, "vnode", shared.clock)
        self._following = self._make_following()
        self._streams = self._make_streams()
        self._factory = ChaperonFactory(
            shared.identity,
            shared.manifests,
            shared.overrides,
            self._following.ensure,
            self._streams.digest,
        )
        self._groups = PodGroups(shared.client, shared.clock)
        self._gangs = Gangs(self._groups.find)
        self._proxies = self._make_proxies()
        self._coexistence = Coexistence(shared.client)
        self._target_side = TargetSide(shared, self._coexistence)
        self._cache = Cache(shared.constraints)
        self._spans = self._make_spans()
        self._scheduling = ProxyScheduling(
            *(shared, self._following, self._factory, self._cache, self._events, self._pod),
            gangs=self._gangs,
            on_cycle=None if self._spans is None else self._spans[0].on_cycle,
            leftovers=self._proxies.leftovers,
        )
        self._scheduling.event_handlers.await_ends(self._proxies.returned)
        self._placement = PlacementControllers(
            shared, self._proxies, self._cache, self._scheduling, self._events
        )

    async def run(self) -> None:
        """Lead until cancelled; proxy pods and Targets must be known."""
        with self._shared.including(self._proxies.bound):
            try:
                async with supervise() as tasks:
                    await parts.start(self.parts(), tasks)
                    await sleep_forever()
            finally:
                for gauge in (metrics.PENDING_PODS, metrics.PLACEHOLDERS):
                    gauge.clear()  # the next leader counts its own

    def parts(self) -> Parts:
        """List what a leader runs, in the order in which it is started."""
        shared, config = self._shared, self._shared.options.config
        as_target = self._target_side
        return (
            AwaitedStep("namespaces-known", lambda _tasks: shared.namespaces.synced.wait()),
            # Before any of their pods may be scheduled, or allowed to run.
            AwaitedStep("gangs-known", self._follow_gangs),
            Part("events-of-leader", self._events.run),
            Part("target-reports", lambda: shared.connections.lead(self._events)),
            Part("summary", lambda: as_target.make_summary_writer().run()),
            Part("sources", lambda: as_target.make_sources().run(), when=config.source_controller),
            Part("issued-tokens", lambda: self._make_issuing().run(), when=config.issuing.enabled),
            Part(
                "target-sets",
                lambda: self._make_target_sets().run(),
                # They make Targets in any namespace, and cluster-wide ones.
                when=bool(config.inventory.namespaces) and not config.namespaces,
            ),
            *self._traces(),
            Part("virtual-nodes", self._keep_nodes),
            Part("chaperons", lambda: as_target.make_chaperons().run()),
            Part("gang-conflicts", lambda: as_target.make_gang_conflicts().run()),
            Part("target-streams", self._streams.run),
            Part("proxies", self._proxies.run),
            Part("bound-pods", self._proxies.bound.run),
            Part("delegate-events", lambda: self._make_delegate_events().run()),
            Part("orphans", lambda: self._make_orphans().run()),
            Part("finalizers", lambda: self._make_stale_finalizers().run()),
            Part("override-policies", lambda: self._make_policy_reporter().run()),
            Part("following", self._follow),
            Part(
                "lasting-rights",
                lambda: self._make_lasting_rights().run(),
                when=bool(config.namespaces),
            ),
            *self._placement.parts(),
            Part("kueue-checks", self._answer_checks, when=config.kueue.placement_check),
            Part(
                "multikueue",
                lambda: multikueue.make(shared).run(),
                # What it keeps is cluster-wide.
                when=config.kueue.multi_kueue is not None and not config.namespaces,
            ),
            *self._scores(),
            Part("gangs", lambda: self._scheduling.gang_controller(self._groups).run()),
            Part("scheduler", self._schedule),
        )

    def _scores(self) -> Parts:
        """List what reads scores of targets, if a plugin uses any, and what publishes others."""
        shared, scheduling = self._shared, self._scheduling
        used = bool(scheduling.scores.used)
        return (
            Part("scores", scheduling.scores.run, when=used),
            # Else the first pods would be placed as if there were none.
            AwaitedStep("scores-known", lambda _tasks: scheduling.scores.wait_known(), when=used),
            Part("missing-scores", lambda: scheduling.make_missing_scores().run(), when=used),
            Part(
                "published-scores",
                lambda: published_scores.make(shared, self._events).run(),
                when=bool(shared.options.config.scores.publish),
            ),
        )

    def _traces(self) -> Parts:
        """List what tells spans of pods' ways, which watches like all others, if any are wanted."""
        if self._spans is None:
            return ()

        of_proxies, of_delegates = self._spans
        return (
            Part("spans-of-proxies", of_proxies.run),
            Part("spans-of-delegates", of_delegates.run),
        )

    def _make_spans(self) -> tuple[ProxySpans, DelegateSpans] | None:
        shared, sender = self._shared, self._shared.options.spans
        if sender is None:
            return None

        of_proxies = ProxySpans(sender, shared.links, shared.subscribe_pods, shared.clock)
        watched = (shared.chaperons, shared.delegates)
        return of_proxies, DelegateSpans(sender, *watched, shared.clock)

    def _follow(self) -> Coroutine[Any, Any, None]:
        """Start Following; proxy pods are known by now, those that others bound are not yet."""
        for pods in (self._shared.proxies, self._proxies.bound):
            pods.subscribe(self._following.on_pod)
            pods.subscribe(self._shared.overrides.failures.on_pod)

        return self._following.run()

    async def _follow_gangs(self, _tasks: Supervisor) -> None:
        self._shared.proxies.subscribe(self._gangs.on_pod)

    def _schedule(self) -> Coroutine[Any, Any, None]:
        self._scheduling.event_handlers.open()
        self._shared.health.on_scrape(self._scheduling.scheduler.count_pending)
        self._shared.health.on_scrape(self._placement.placeholders.measure)
        return self._scheduling.scheduler.run()

    def _answer_checks(self) -> Coroutine[Any, Any, None]:
        losses = self._placement.lost
        checks = kueue_checks.make(self._shared, self._scheduling.framework, self._cache, losses)
        for pods in (self._shared.proxies, self._proxies.bound):
            pods.subscribe(checks.on_pod)

        return checks.run()

    def _make_lasting_rights(self) -> LastingRights:
        shared = self._shared
        ended = (shared.proxies, shared.chaperons, shared.delegates)
        return LastingRights(shared.client, shared.namespaces, ended)

    def _keep_nodes(self) -> Coroutine[Any, Any, None]:
        return virtual_nodes.make(self._shared, self._kubelet, self._coexistence).run()

    def _make_stale_finalizers(self) -> StaleFinalizers:
        shared = self._shared
        return StaleFinalizers(shared.client, shared.proxies, shared.targets, shared.clock)

    def _make_policy_reporter(self) -> PolicyReporter:
        shared = self._shared
        return PolicyReporter(shared.client, shared.overrides, self._events, shared.clock)

    def _make_issuing(self) -> TokenIssuing:
        shared = self._shared
        return TokenIssuing(
            shared.client,
            shared.links,
            shared.targets,
            shared.authors,
            shared.namespaces,
            self._events,
            longest=shared.options.config.issuing.max_expiration_seconds,
            clock=shared.clock,
        )

    def _make_target_sets(self) -> TargetSets:
        shared = self._shared
        return TargetSets(
            shared.client,
            shared.targets,
            shared.nodes,
            shared.subscribe_pods,
            shared.pods_on,
            shared.options.config.inventory,
            shared.clock,
        )

    def _make_streams(self) -> TargetStreams:
        shared = self._shared

        def secret(link: Link) -> str:
            return stream_messages.secret(shared.manifest_key.key, str(link.target))

        return TargetStreams(shared.links, secret, shared.open_stream, shared.clock)

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

    def _pods_known_on(self, node: str, namespace: str) -> bool:
        """Tell whether it is known which pods of a namespace are on a virtual node."""
        bound = self._proxies.bound
        return self._shared.proxies.knows(namespace) and bound.knows(node, namespace)

    def _make_proxies(self) -> ProxyController:
        shared = self._shared
        return ProxyController(
            shared.client,
            shared.proxies,
            shared.links,
            self._factory,
            enabled_namespaces=shared.enabled_namespaces,
            target_exists=shared.targets.has_node,
            trim=trim_pod,
            ensure_bound=self._following.ensure_bound,
            events=self._events,
            clock=shared.clock,
            policies=shared.policies,
            gangs=self._gangs,
            allow=self._streams.allow,
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

    def _make_orphans(self) -> OrphanController:
        shared = self._shared
        targets = shared.targets
        return OrphanController(
            shared.client,
            shared.proxies,
            shared.links,
            targets.informers,
            targets.cluster,
            shared.clock,
        )
