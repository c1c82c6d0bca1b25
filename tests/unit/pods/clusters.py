"""A source whose pods are scheduled, and its targets: API servers in memory, in simulated time.

The proxy scheduler and all that it uses are real, down to links and informers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from scheduler_plugins import defaults
from tests import background
from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.apiserver.store import Change
from tests.permitted import MANIFESTS
from tests.unit.pods.targets import LATENCY, US, Target
from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.gangs.pod_groups import GroupStanding
from vnode.gangs.table import Gangs
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.overrides.overrides import PolicyOverrides
from vnode.planning.policy import NO_POLICIES, Policies
from vnode.pods.overriding import NoOverrides, Overrides
from vnode.pods.source import failure_handler, proxy_state, quota_events
from vnode.pods.source.binding import Binder
from vnode.pods.source.candidate_phase import CandidatePhase
from vnode.pods.source.candidate_requests import CandidateRequests
from vnode.pods.source.candidates import CandidateSettings
from vnode.pods.source.chaperon_factory import ChaperonFactory
from vnode.pods.source.event_handlers import EventHandlers
from vnode.pods.source.gang_rounds import GangRounds
from vnode.pods.source.preemption_chooser import PreemptionChooser
from vnode.pods.source.scheduler import ProxyScheduler
from vnode.pods.source.unschedulable_reporter import UnschedulableReporter
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scheduling import config, registry
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.plugin import Handle
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.registry import Registry
from vnode.scores.watched import WatchedScores


class SourceCluster:
    """The cluster that schedules; `bound` says when each pod was bound."""

    def __init__(
        self,
        clock: Clock,
        *targets: Target,
        plugins: Object | None = None,
        settings: CandidateSettings | None = None,
        label_required: bool = False,
        overrides: Overrides | None = None,
        policies: Policies = NO_POLICIES,
        server: APIServer | None = None,
        manifests: SavedManifests = MANIFESTS,
    ) -> None:
        self.server = server or APIServer("c1", clock, latency=lambda: LATENCY)
        self.targets = targets
        self.links = Links()
        self.bound: dict[str, float] = {}
        self.bringing: dict[str, float] = {}  # by node: how long it takes
        self.annotations: dict[str, str] = {}  # by node: what users are told of it
        self.renewed: list[tuple[str, str]] = []  # pod and node
        self._clock = clock
        self.server.store.changed.add(self._on_change)
        self._client = self.server.client()
        self._proxies = Informer(
            self._client,
            kinds.PODS,
            field_selector=f"spec.schedulerName={keys.PROXY_SCHEDULER}",
            trim=proxy_state.trim,
        )
        self._nodes = Informer(self._client, kinds.NODES)
        self._namespaces = Informer(self._client, kinds.NAMESPACES)
        namespaces = EnabledNamespaces(self._namespaces, label_required=label_required)
        self.scores = WatchedScores(self._client)
        profile = config.load({"profile": plugins or {}}).profile
        self.gangs = Gangs(lambda _key: GroupStanding())
        self.handle = Handle(
            namespace_refusal=namespaces.refusal,
            manifest_refusal=manifests.refusal,
            is_charged=lambda pod, node: quota_events.is_charged(self.links, pod, node),
            is_refused=lambda pod, node: quota_events.is_refused(self.links, pod, node),
            policies=policies,
            use_score=self.scores.use,
            candidates=self.links.candidates_of,
            gangs=self.gangs,
            clock=clock,
        )
        self.framework = framework = registry.build(
            profile, Registry(defaults.PLUGINS), defaults.WEIGHTS, self.handle
        )
        self.queue = queue = SchedulingQueue(
            clock,
            framework.queue_sort.sort_key,
            framework.registrations() | failure_handler.REGISTRATIONS,
            pre_enqueue=framework.pre_enqueue,
        )
        self.cache = cache = Cache()
        self._books = EventHandlers(self._nodes, namespaces, self.links, cache, queue)
        self._books.follow_scores(
            lambda link: self.scores.of(link.target, link.target.name),
            self.scores.subscribe,
            clock,
        )
        assumptions = Assumptions(framework, cache, queue, clock, policies)
        lookup = self._proxies.store.get
        factory = ChaperonFactory(US, manifests, overrides or NoOverrides(), self._ensure_copies)
        requests = CandidateRequests(factory, clock)
        rounds = GangRounds(
            self.gangs,
            framework,
            cache,
            assumptions,
            queue,
            policies,
            self.links,
            lambda _pod: None,
            lambda _pod, _node: False,
            clock,
            lambda: 0.5,
        )
        self.events = EventRecorder(self._client, "vnode", clock)
        self.driver = ProxyScheduler(
            self._proxies,
            self.links,
            framework=framework,
            queue=queue,
            cache=cache,
            assumptions=assumptions,
            candidate_phase=CandidatePhase(
                self._client,
                self.links,
                requests,
                assumptions,
                settings=settings or CandidateSettings(),
                lookup=lookup,
                renew=lambda pod, link: self.renewed.append((objects.name(pod), link.node_name)),
                factory=factory,
                gangs=rounds,
                clock=clock,
            ),
            policies=policies,
            gangs=rounds,
            binder=Binder(
                self._client,
                self.links,
                framework.binding_cycle,
                lookup=lookup,
                allowed=self._allow,
                clock=clock,
            ),
            preemption=PreemptionChooser(
                self._client,
                self.links,
                requests,
                lookup=lookup,
                events=self.events,
                clock=clock,
            ),
            reporter=UnschedulableReporter(
                self._client,
                self.links,
                lookup=lookup,
                unconnected=self._books.unconnected,
                events=self.events,
                clock=clock,
            ),
            clock=clock,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Schedule; inside, all that was there is known."""
        for target in self.targets:
            metadata = {"name": target.node, "labels": {"target": target.node}}
            spec = {"taints": target.taints}
            if not self.server.find(kinds.NODES, target.node):
                self.server.add(kinds.NODES, {"metadata": metadata, "spec": spec})

        connected = [target.link for target in self.targets]
        async with (
            links.connected(*connected),
            links.following(self._proxies, self._nodes, self._namespaces),
        ):
            for link in connected:
                self.links.add(link)

            self._proxies.subscribe(self.gangs.on_pod)
            self._books.open()
            async with background.running(self.scores.run()):
                await self.scores.wait_known()
                async with background.running(self.driver.run()):
                    yield

    def follow(self, overrides: PolicyOverrides) -> None:
        """Have waiting pods tried again when an override policy changes, as the agent does."""
        overrides.subscribe(lambda _key: self.queue.move(ClusterEvent(EventKind.OVERRIDES)))

    def add(self, name: str, *, cpu: str = "", **metadata: Any) -> Object:
        """Store a proxy pod, as the webhook makes it; its UID is its name."""
        spec = metadata.pop("spec", {})
        resources = {"requests": {"cpu": cpu}} if cpu else {}
        finalizers = [target.link.target.finalizer for target in self.targets]
        head = {"name": name, "namespace": "default", "uid": name, "finalizers": finalizers}
        pod = {
            "metadata": {**head, **metadata},
            "spec": {
                "schedulerName": keys.PROXY_SCHEDULER,
                "containers": [{"name": "main", "resources": resources}],
                **spec,
            },
            "status": {"phase": "Pending"},
        }
        return self.server.add(kinds.PODS, pod)

    def label_namespace(self) -> None:
        """Store the namespace with the label that a cluster administrator sets to enable it."""
        label, value = keys.WEBHOOK_NAMESPACE_LABEL
        self.server.add(
            kinds.NAMESPACES, {"metadata": {"name": "default", "labels": {label: value}}}
        )

    def pod(self, name: str) -> Object:
        """Return a pod as it is stored, not to be changed."""
        found = self.server.store.get(kinds.PODS, f"default/{name}")
        assert found is not None
        return found

    def node_of(self, name: str) -> str:
        return str(objects.spec(self.pod(name)).get("nodeName") or "")

    def change(self, name: str, **fields: Any) -> None:
        """Merge `status` and the like into the pod's."""

        def change(pod: Object) -> None:
            for field, value in fields.items():
                pod[field] = {**pod[field], **value}

        self.server.change(kinds.PODS, name, "default", change)

    def remove(self, name: str) -> None:
        self.server.remove(kinds.PODS, name, "default")

    def cordon(self, target: Target, cordoned: bool = True) -> None:
        """Cordon a virtual node, or make it schedulable again."""

        def change(node: Object) -> None:
            node["spec"]["unschedulable"] = cordoned

        self.server.change(kinds.NODES, target.node, "", change)

    @property
    def bindings(self) -> list[str]:
        """The pods for which a binding was asked, in order."""
        return [each.name for each in self.server.received("create", kinds.PODS, "binding")]

    async def until_bound(self, *pods: str) -> None:
        await self.server.until(lambda: all(name in self.bound for name in pods))

    async def until_said(self, name: str, text: str) -> None:
        """Wait until the pod's PodScheduled condition has that text."""

        def has_text() -> bool:
            return text in str(objects.condition(self.pod(name), "PodScheduled") or {})

        await self.server.until(has_text)

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind is kinds.PODS and change.new and objects.spec(change.new).get("nodeName"):
            self.bound.setdefault(objects.name(change.new), self._clock.monotonic())

    async def _allow(self, _pod: Object) -> None:
        """Allow every pod: none here came from another cluster."""

    async def _ensure_copies(self, _pod: Object, link: Link) -> tuple[str, Sequence[str]]:
        await asyncio.sleep(self.bringing.get(link.node_name, 0.0))
        return self.annotations.get(link.node_name, ""), ()


def apart(app: str) -> Object:
    """Build the spec of pods of an app of which no two may be in one target."""
    term = {"topologyKey": "target", "labelSelector": {"matchLabels": {"app": app}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}
