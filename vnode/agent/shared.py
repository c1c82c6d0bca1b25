"""Holds what the parts of one agent share: its cluster, its informers, its connections to targets.

All of it lives as long as the agent, in every replica, so that a new leader starts warm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from vnode.agent.config import AgentConfig
from vnode.agent.parts import AwaitedStep, Part, Parts
from vnode.api import keys, kinds, node_labels, objects, shared_strings
from vnode.api.authors import RecordedAuthors
from vnode.api.clock import SystemClock
from vnode.api.errors import NotFound
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.saved_manifest import SavedManifests
from vnode.following import references
from vnode.kube.client import Client
from vnode.kube.informer import Handler, Informer
from vnode.kube.server_clock import ServerClock
from vnode.nodes import controller as nodes
from vnode.nodes.former_nodes import FormerNodes
from vnode.nodes.lease_renewal import LeaseRenewal
from vnode.overrides.overrides import PolicyOverrides
from vnode.placement.policies.collection import PlacementPolicies
from vnode.pods import chaperon_spec
from vnode.pods.reservations import Reservations
from vnode.pods.source import proxy_state
from vnode.pods.source.externally_bound import ExternallyBoundPods
from vnode.pods.source.stream_opening import OpenChannel, open_channel
from vnode.pods.streams import SourceStreams
from vnode.pods.target import chaperon_controller
from vnode.runtime.enabled_namespaces import EnabledNamespaces
from vnode.runtime.health import ProcessHealth
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.manifest_key import ManifestKey
from vnode.targets.controller import TargetController
from vnode.targets.target_lister import TargetLister
from vnode.telemetry.span_sender import SpanSender

POLICIES_AWAITED: Final = 30.0
"""Seconds for which a replica is not ready, at most, because it does not know the policies."""

trim_pod = shared_strings.sharing(references.keeping(proxy_state.trim))
"""Trims a pod for the store: the fields that a proxy needs, and the objects it refers to."""


def references_of(pod: Object) -> list[tuple[str, str]]:
    """Return what a pod refers to in its namespace, by plural and name."""
    return [(ref.kind.plural, ref.name) for ref in references.of(pod)]


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """The flags of `vnode agent`; all else is in the configuration."""

    namespace: str
    address: str
    config: AgentConfig
    credentials: Path | None
    holder: str
    stop_requested: asyncio.Event = field(default_factory=asyncio.Event)
    """Set before the agent is cancelled by a signal; not set when a fault cancels it."""
    admission_command: tuple[str, ...] = ()
    """Starts the process that answers admission reviews."""
    spans: SpanSender | None = None
    """Takes the spans of pods; None if nothing is traced."""


class Shared:
    """The shared parts of one replica of the agent of one cluster."""

    def __init__(
        self, client: Client, identity: Identity, options: AgentOptions, health: ProcessHealth
    ) -> None:
        self.client = client
        self.identity = identity
        self.options = options
        # Times on objects are those of the API server: they are compared with its own.
        self.clock = ServerClock(SystemClock(), client.skew)
        self.health = health
        self.links = Links()
        self.manifest_key = ManifestKey(client, options.namespace, now=self.clock.now)
        self.manifests = SavedManifests(
            lambda: self.manifest_key.key,
            trust_unsigned=options.config.trust_unsigned_manifests,
        )
        self.authors = RecordedAuthors(
            lambda: self.manifest_key.key,
            self.clock.now,
            lambda: self.manifest_key.authors_timed_since,
        )
        self.namespaces = Informer(client, kinds.NAMESPACES, trim=_metadata_only)
        self.namespaces.subscribe_by_key(client.scope.retry)
        self.enabled_namespaces = EnabledNamespaces(
            self.namespaces, label_required=options.config.require_namespace_label
        )
        self.proxies = Informer(
            client,
            kinds.PODS,
            field_selector=keys.PROXY_PODS,
            trim=trim_pod,
            indexes=proxy_state.INDEXES,
        )
        self.chaperons, self.delegates = chaperon_controller.informers(client)
        self.nodes = nodes.informer(client)
        self.node_leases = LeaseRenewal(self.clock)
        self.targets = TargetLister(client, limit=options.config.targets_per_namespace)
        self.former_nodes = FormerNodes(self.nodes, self.targets.has_node)
        self.policies = PlacementPolicies(
            client, self.targets, self.clock, kept_together=options.config.keep_together
        )
        self.connections = TargetController(
            client,
            identity,
            self.targets,
            self.links,
            clock=self.clock,
            trust=options.config.trust_in,
            inventory=options.config.inventory,
            namespace_labels=self._labels_of_namespace,
            is_ending=self.is_ending,
        )
        self.streams = SourceStreams(self.chaperons, self.clock)
        self.open_stream: OpenChannel = open_channel  # to a target, for its leader
        self.reservations = Reservations(client, self.chaperons, streams=self.streams)
        self.overrides = PolicyOverrides(
            client,
            labels=self._labels_of_node,
            references=references_of,
            key=lambda: self.manifest_key.key,
        )
        self._bound: ExternallyBoundPods | None = None  # known to the leader only

    def constraints(self, pod: Object) -> Object | None:
        """Return the spec by which a pod's delegate chooses its node; None if it is not known."""
        return chaperon_spec.constraints(pod, self.manifests)

    def watches(self) -> Parts:
        """List all informers but that of virtual nodes; connections and nodes need Targets."""
        informers = (self.namespaces, self.proxies, self.chaperons, self.delegates)
        optional = self.overrides.informers  # a cluster may lack their CRDs: none waits
        return (
            AwaitedStep("health-checks", lambda _tasks: self._add_health_checks(informers)),
            *(Part(each.kind.plural, each.run) for each in (*informers, *optional)),
            Part("watch-targets", self.targets.run),
            Part("placement-policies", self.policies.run),
        )

    async def _add_health_checks(self, informers: Iterable[Informer]) -> None:
        for informer in informers:
            self.health.add_event(informer.kind.plural, informer.synced)

        # Else the webhook would admit pods as if there were no policies.
        self.health.add_awaited(
            "placement-policies",
            (informer.answered for informer in self.policies.informers),
            POLICIES_AWAITED,
            self.clock,
        )

    def is_ending(self, namespace: str) -> bool:
        """Tell whether a namespace is being deleted."""
        return objects.is_terminating(self.namespaces.store.get(namespace) or {})

    def _labels_of_namespace(self, name: str) -> Mapping[str, str]:
        return objects.labels(self.namespaces.store.get(name) or {})

    def _labels_of_node(self, name: str) -> Mapping[str, str] | None:
        node = self.nodes.store.get(name)
        return None if node is None else node_labels.of_node(node)

    def ocm_name(self, link: Link) -> str:
        """Return what a target's inventory says that Open Cluster Management calls its cluster, ""
        if it does not say."""
        labels = self._labels_of_node(link.node_name) or {}
        return labels.get(keys.OCM_CLUSTER_NAME, "")

    def connecting(self) -> Parts:
        """List what connects to targets and watches the virtual nodes, until these are known."""
        return (
            Part("targets", self.connections.run, needs_servers=True),
            Part("nodes", self.nodes.run),
            AwaitedStep("nodes-known", lambda _tasks: self.nodes.synced.wait()),
        )

    @contextmanager
    def including(self, bound: ExternallyBoundPods) -> Iterator[None]:
        """Include the pods that others bound to virtual nodes, within the block."""
        self._bound = bound
        try:
            yield
        finally:
            self._bound = None

    async def find_pod(self, node: str, namespace: str, name: str) -> Object | None:
        """Return a pod from the stores, else from the API server; None if it does not exist."""
        key = objects.join_key(namespace, name)
        pod = self.proxies.store.get(key) or (self._bound.get(key) if self._bound else None)
        if pod is not None and objects.node_name(pod) == node:
            return pod

        if not self.client.scope.covers(namespace):
            return None

        try:
            return await self.client.get(kinds.PODS, name, namespace)
        except NotFound:
            return None

    def subscribe_pods(self, handler: Handler) -> None:
        """Call `handler(old, new)` for every change of a pod on a virtual node, or of a proxy."""
        self.proxies.subscribe(handler)
        if self._bound is not None:
            self._bound.subscribe(handler)

    def pods_on(self, node: str) -> Iterator[Object]:
        """Iterate over the pods on a virtual node that are in the stores."""
        proxies = self.proxies.store.by_index(proxy_state.NODE_INDEX, node)
        pods = [*proxies, *(self._bound.pods_on(node) if self._bound else ())]
        return ({k: v for k, v in pod.items() if k != references.FIELD} for pod in pods)


def _metadata_only(obj: Object) -> Object:
    return {"metadata": objects.metadata(obj)}
