"""Says what virtual Nodes should be: their taints, labels, annotations and status.

Reads the link to the target, its ClusterSummary, the inventory and what else is in the cluster;
`NodeController` compares it with the Node, and writes what differs.
"""

from __future__ import annotations

from collections.abc import Callable

from vnode.api import node_features, node_labels, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.nodes import labelling, managed_clusters, virtual
from vnode.nodes.coexistence import Coexistence
from vnode.nodes.managed_clusters import ManagedClusters
from vnode.nodes.missing_links import MissingLinks
from vnode.runtime.link import Link
from vnode.runtime.link_health import LinkHealth


class DesiredNodes:
    """Builds what a virtual Node should have; the parameters are those of `NodeController`."""

    def __init__(
        self,
        client: Client,
        coexistence: Coexistence,
        missing_links: MissingLinks,
        members: ManagedClusters | None,
        *,
        advertise_address: str,
        port_of: Callable[[str], int | None],
        certificate_health: Callable[[], LinkHealth | None],
        clock: Clock,
    ) -> None:
        self._client = client
        self._coexistence = coexistence
        self._missing_links = missing_links
        self._members = members
        self._address = advertise_address
        self._port_of = port_of
        self._certificate_health = certificate_health
        self._clock = clock
        self._server_version = ""  # "" until it was requested

    def member_taints(self, link: Link | None) -> Objects | None:
        """Return the taints of the Node's ManagedCluster, None if they are not known.

        They go if the agent's configuration asks for none, or the inventory names no ManagedCluster
        any more; for that the link must have been described, as it is before it is in step.
        """
        if link is None:
            return None

        if not managed_clusters.name_of(link.description) and not link.summaries.synced.is_set():
            return None

        return self._members.taints_of(link.description) if self._members is not None else []

    async def description(self, node: Object, target: TargetKey, link: Link) -> Object:
        """Return the labels and annotations that a Node should have, once the summary is known.

        Until all pods are known, what the Node does not show stays hidden.
        """
        own, excluded = self._coexistence, link.labels_excluded
        role = await own.role_label()
        spread_over = own.spread_over
        if not own.is_known:
            spread_over = spread_over | node_labels.hidden_of(node).keys()

        if excluded and any(excluded(f"{key}={value}") for key, value in role.items()):
            role = {}

        shared = objects.labels(link.summary or {})
        labels, hidden = labelling.split(
            target,
            labelling.of_target(
                shared, excluded, link.description.labels, domains=link.options.label_domains
            ),
            role=role,
            shown=link.options.shown_labels,
            spread_over=spread_over,
        )
        annotations = {**link.description.annotations, **node_labels.record(hidden)}
        return virtual.description(target, labels, self._port(node), annotations)

    async def status(self, node: Object, target: TargetKey, link: Link | None) -> Object:
        """Return the status; the capacity is kept while the target's summary is not known."""
        source = objects.status(node)
        if link is not None and link.summaries.synced.is_set():
            source = link.summary or {}

        offer = tuple(virtual.offered(source.get(field)) for field in ("capacity", "allocatable"))
        return virtual.status(
            node,
            health=link.health if link else self._missing_links.health(target),
            certificate=self._certificate_health(),
            members=self._members.sync_status(link.description) if self._members and link else None,
            capacity=offer[0],
            allocatable=offer[1],
            address=self._address,
            port=self._port(node),
            server_version=await self._version(),
            features=link.node_features if link else node_features.NONE,
            now=self._clock.now(),
        )

    def _port(self, node: Object) -> int | None:
        """Return the served port, else the recorded one: the default may be another Node's."""
        return self._port_of(objects.name(node)) or virtual.recorded_port(node)

    async def _version(self) -> str:
        if not self._server_version:
            answer = await self._client.request("GET", "/version")
            self._server_version = str((answer or {}).get("gitVersion") or "v0.0.0")

        return self._server_version
