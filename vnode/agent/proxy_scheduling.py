"""Puts together what schedules the proxy pods of one term: framework, queue, phases and binding."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from scheduler_plugins import defaults
from vnode.agent.config import AgentConfig
from vnode.agent.shared import Shared
from vnode.api import resources
from vnode.api.cluster_scores import TargetScores
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.following.following import Following
from vnode.gangs.table import Gangs
from vnode.kube.events import EventRecorder
from vnode.pods.source import failure_handler, quota_events
from vnode.pods.source.binding import Binder
from vnode.pods.source.candidate_phase import CandidatePhase
from vnode.pods.source.candidate_requests import CandidateRequests
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.event_handlers import EventHandlers
from vnode.pods.source.gang_controller import GangController
from vnode.pods.source.gang_rounds import GangRounds
from vnode.pods.source.pod_groups import PodGroups
from vnode.pods.source.preemption_chooser import PreemptionChooser
from vnode.pods.source.scheduler import OnCycle, ProxyScheduler
from vnode.pods.source.unschedulable_reporter import UnschedulableReporter
from vnode.runtime.link import Link
from vnode.scheduling import registry, rooms
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.plugin import Handle
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.snapshot import Snapshot
from vnode.scores.reporting import MissingScores
from vnode.scores.watched import WatchedScores


def make_framework(config: AgentConfig, handle: Handle) -> Framework:
    """Make the plugins of the configured profile; ConfigError if that is not possible."""
    plugins = registry.Registry(defaults.PLUGINS, registry.installed())
    return registry.build(
        config.scheduling.profile,
        plugins,
        defaults.WEIGHTS,
        handle,
    )


class ProxyScheduling:
    """Holds the scheduler of a term and what feeds it; `find_pod` returns the pod of a key.

    `leftovers` is that of `CandidateRequests`.
    """

    def __init__(
        self,
        shared: Shared,
        following: Following,
        factory: ChaperonFactory,
        cache: Cache,
        events: EventRecorder,
        find_pod: Callable[[str], Object | None],
        gangs: Gangs,
        *,
        leftovers: Callable[[str, str], int],
        on_cycle: OnCycle | None = None,
    ) -> None:
        self._shared = shared
        self._on_cycle = on_cycle
        self._leftovers = leftovers
        self._following = following
        self._factory = factory
        self._cache = cache
        self._events = events
        self._find_pod = find_pod
        self.scores = WatchedScores(shared.client)
        self._gangs = gangs
        self._handle = self._make_handle()
        self.framework = make_framework(shared.options.config, self._handle)
        self.scheduler, self.event_handlers = self._make_scheduler()

    def rooms(self, pod: Object, snapshot: Snapshot) -> Mapping[str, int | None]:
        """Return how many more pods like one each node has room for; None if it is not known."""
        return rooms.rooms(pod, resources.pod_requests(pod), snapshot.nodes, self._handle)

    def make_missing_scores(self) -> MissingScores:
        """Make what tells of scores that are used and do not count."""
        shared = self._shared

        return MissingScores(
            self.scores,
            shared.links,
            self._scores_of,
            shared.targets.get,
            self._events,
            shared.clock,
        )

    def _scores_of(self, link: Link) -> TargetScores:
        cluster = self._shared.ocm_name(link) or link.target.name
        return self.scores.of(link.target, cluster)

    def _make_handle(self) -> Handle:
        shared = self._shared
        return Handle(
            namespace_refusal=shared.enabled_namespaces.refusal,
            manifest_refusal=shared.manifests.refusal,
            constraints=shared.constraints,
            is_overridden=self._is_overridden,
            is_charged=lambda pod, node: quota_events.is_charged(shared.links, pod, node),
            is_refused=lambda pod, node: quota_events.is_refused(shared.links, pod, node),
            policies=shared.policies,
            use_score=self.scores.use,
            candidates=shared.links.candidates_of,
            gangs=self._gangs,
            clock=shared.clock,
        )

    def _is_overridden(self, pod: Object, node: str) -> bool:
        """Tell whether override policies may change the pod there, or it is not known yet."""
        link = self._shared.links.get(node)
        try:
            return link is None or self._shared.overrides.choose(pod, link) is not None
        except VnodeError:
            return True

    def _make_scheduler(self) -> tuple[ProxyScheduler, EventHandlers]:
        shared, queue = self._shared, self._make_queue()
        event_handlers = EventHandlers(
            shared.nodes, shared.enabled_namespaces, shared.links, self._cache, queue
        )
        event_handlers.follow(shared.policies)
        if self.scores.used:
            event_handlers.follow_scores(self._scores_of, self.scores.subscribe, shared.clock)

        assumptions = Assumptions(self.framework, self._cache, queue, shared.clock, shared.policies)
        rounds = self._make_gang_rounds(assumptions, queue)
        requests = CandidateRequests(self._factory, shared.clock, self._leftovers, rounds.mark)
        reporter = UnschedulableReporter(
            shared.client,
            shared.links,
            lookup=shared.proxies.store.get,
            unconnected=event_handlers.unconnected,
            events=self._events,
            clock=shared.clock,
        )
        self._queue, self._reporter = queue, reporter
        driver = ProxyScheduler(
            shared.proxies,
            shared.links,
            framework=self.framework,
            queue=queue,
            cache=self._cache,
            assumptions=assumptions,
            candidate_phase=self._make_candidate_phase(requests, assumptions, rounds),
            binder=self._make_binder(),
            preemption=PreemptionChooser(
                shared.client,
                shared.links,
                requests,
                lookup=self._find_pod,
                events=self._events,
                clock=shared.clock,
            ),
            reporter=reporter,
            gangs=rounds,
            clock=shared.clock,
            policies=shared.policies,
            on_cycle=self._on_cycle,
        )
        return driver, event_handlers

    def _make_queue(self) -> SchedulingQueue:
        shared, framework = self._shared, self.framework
        queue = SchedulingQueue(
            shared.clock,
            framework.queue_sort.sort_key,
            framework.registrations() | failure_handler.REGISTRATIONS,
            pre_enqueue=framework.pre_enqueue,
            settings=shared.options.config.scheduling.queue.settings(),
        )

        def overrides_changed(_key: str) -> None:
            self._cache.quotas.forget_answers()
            queue.move(ClusterEvent(EventKind.OVERRIDES))

        shared.overrides.subscribe(overrides_changed)
        return queue

    def _make_candidate_phase(
        self, requests: CandidateRequests, assumptions: Assumptions, rounds: GangRounds
    ) -> CandidatePhase:
        shared = self._shared
        return CandidatePhase(
            shared.client,
            shared.links,
            requests,
            assumptions,
            settings=shared.options.config.candidates,
            lookup=shared.proxies.store.get,
            renew=self._following.renew,
            factory=self._factory,
            gangs=rounds,
            clock=shared.clock,
        )

    def _make_gang_rounds(self, assumptions: Assumptions, queue: SchedulingQueue) -> GangRounds:
        shared = self._shared
        return GangRounds(
            self._gangs,
            self.framework,
            self._cache,
            assumptions,
            queue,
            shared.policies,
            shared.links,
            shared.constraints,
            self._is_overridden,
            shared.clock,
            random.random,
        )

    def gang_controller(self, groups: PodGroups) -> GangController:
        """Return what looks after gangs that are not placed yet, or not as a whole."""
        shared = self._shared
        return GangController(
            shared.client,
            self._gangs,
            groups,
            shared.links,
            self._queue,
            self._reporter,
            self._events,
            shared.clock,
            keep_after=shared.options.config.gangs.keep_room_after_seconds,
        )

    def _make_binder(self) -> Binder:
        shared = self._shared
        return Binder(
            shared.client,
            shared.links,
            self.framework.binding_cycle,
            lookup=shared.proxies.store.get,
            allowed=shared.reservations.allowed,
            clock=shared.clock,
        )
