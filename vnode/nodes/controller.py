"""Reconciles virtual Nodes in the source: one for each Target, as long as the Target exists.

The desired Node depends only on the existing Targets and the links to them, so a restarted agent
continues. When a Target is created or deleted, a link, its health or its summary changes, or
somebody edits or deletes the Node, the Node's name is put into the queue, and one reconciliation
corrects it: `node_writer` writes what differs. The Node of a Target that cannot be connected is not
ready, and says so.

The Lease shows only that the agent lives, and is renewed whatever the target does, by another
thread (`lease_renewal.py`), which is told here which Nodes there are; the condition Ready shows at
once whether the target lives, with the reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from vnode.api import keys, kinds, objects, target_key
from vnode.api.clock import Clock
from vnode.api.errors import NotFound
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.slices import in_slices
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.nodes import managed_clusters, virtual
from vnode.nodes.coexistence import Coexistence
from vnode.nodes.desired import DesiredNodes
from vnode.nodes.former_nodes import FormerNodes
from vnode.nodes.known_targets import KnownTargets
from vnode.nodes.lease_renewal import LeaseRenewal
from vnode.nodes.managed_clusters import ManagedClusters
from vnode.nodes.missing_links import MissingLinks
from vnode.nodes.node_writer import NodeWriter
from vnode.runtime import supervisor
from vnode.runtime.controller import Controller
from vnode.runtime.link import Link
from vnode.runtime.link_health import LinkHealth
from vnode.runtime.links import Links
from vnode.telemetry import audit, logs

log = logging.getLogger(__name__)


def informer(client: Client) -> Informer:
    """Make an informer for all virtual nodes."""
    selector = f"{keys.PROVIDER_LABEL}={keys.PROVIDER}"
    return Informer(client, kinds.NODES, label_selector=selector)


class NodeController:
    """Keeps the virtual Nodes of the local cluster in step with Targets and links.

    `port_of` returns the port of the kubelet API of a virtual node, None while it has none.
    `certificate_health` returns the health of that API's certificate from a signer or files, None
    without one. Nodes have the taints of their `managed_clusters`, if these are given, and the
    labels that `coexistence` allows. `nodes` is an `informer` that the caller runs, in every
    replica; `former` remembers those that are deleted. The caller runs `leases`, too. With
    `own_share_of` it returns what a target has for this cluster, beside what others use; that is
    shown as allocatable then.
    """

    def __init__(
        self,
        client: Client,
        nodes: Informer,
        links: Links,
        targets: KnownTargets,
        *,
        advertise_address: str,
        port_of: Callable[[str], int | None],
        certificate_health: Callable[[], LinkHealth | None] = lambda: None,
        managed_clusters: ManagedClusters | None = None,
        coexistence: Coexistence | None = None,
        former: FormerNodes | None = None,
        leases: LeaseRenewal | None = None,
        own_share_of: Callable[[Link], Resources | None] | None = None,
        clock: Clock,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._links = links
        self._targets = targets
        self._members = managed_clusters
        self._clock = clock
        self._coexistence = coexistence or Coexistence(client)
        self._former = former or FormerNodes(nodes, lambda name: name in self._wanted)
        self._controller: Controller[str] = Controller(
            "virtual-nodes",
            self._reconcile,
            subject=self._subject,
            workers=4,
            lane=self._namespace_of,
            total=16,
        )
        self._leases = leases or LeaseRenewal(clock)
        self._wanted: dict[str, TargetKey] = {}  # by node name: the Targets that exist
        self._missing_links = MissingLinks(clock)
        desired = DesiredNodes(
            client,
            self._coexistence,
            self._missing_links,
            managed_clusters,
            advertise_address=advertise_address,
            port_of=port_of,
            certificate_health=certificate_health,
            clock=clock,
        )
        self._writer = NodeWriter(
            client, desired, own_share_of=own_share_of, wake=self.refresh, clock=clock
        )

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with supervisor.supervise() as tasks:
                await self._nodes.synced.wait()
                await self._targets.wait_synced()
                self._targets.subscribe_each(self._on_target)
                async for key in in_slices(list(self._targets.keys()), self._clock):
                    self._on_target(key)

                self._nodes.subscribe(self._on_node)
                self._links.subscribe(self._on_link, lambda link: self.refresh(link.node_name))
                self._coexistence.subscribe(self.refresh_all)
                if self._members is not None:
                    self._members.watch(tasks.keyed(), self._on_member)

                await self._controller.run()
        finally:
            self._leases.clear()  # whoever leads next knows which Nodes there are

    def refresh(self, node_name: str) -> None:
        """Reconcile a Node: something that it depends on, such as its port, may have changed."""
        self._controller.add(node_name)

    def refresh_all(self) -> None:
        """Reconcile all Nodes: something that they all depend on may have changed."""
        for name in self._wanted:
            self.refresh(name)

    def _on_target(self, key: TargetKey) -> None:
        """Reconcile the Node of a Target that came or went, or fits now: tenants may have
        thousands, and make and delete more all the time."""
        if not key.fits_label:
            return

        name = key.node_name
        if self._targets.exists(key):
            self._wanted[name] = key
        else:
            self._wanted.pop(name, None)

        self._controller.add(name)
        self._vouch(name)

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        name = objects.name(objects.latest(old, new))
        self._controller.add(name)
        self._vouch(name)

    def _on_link(self, link: Link) -> None:
        name = link.node_name
        link.on_health(lambda: self._controller.add(name))
        link.summaries.subscribe(lambda _old, _new: self._controller.add(name))
        self._controller.add(name)

    def _on_member(self, name: str | None) -> None:
        """Reconcile the Nodes of a ManagedCluster whose taints changed, all Nodes for None."""
        for link in self._links:
            if name is None or managed_clusters.name_of(link.description) == name:
                self.refresh(link.node_name)

    def _subject(self, name: str) -> audit.Subject:
        found = self._wanted.get(name) or target_key.of_node(self._nodes.store.get(name) or {})
        return audit.of_target(found)

    async def _reconcile(self, name: str) -> float | None:
        node, target = self._nodes.store.get(name), self._wanted.get(name)
        with logs.context(node=name):
            if target is None:
                await self._remove(name, node)
                return None

            if node is not None and self._writer.pending(node):
                return None  # the event of our last write wakes us

            link = self._links.get(name)
            if node is not None:
                was_ready = objects.is_ready(node)
                if (wait := self._missing_links.wait(name, link, was_ready=was_ready)) > 0:
                    return wait

            if node is None:
                if not self._targets.fits(target):
                    return None

                node = await self._register(target)

            return await self._writer.bring_up_to_date(node, target, link)

    async def _register(self, target: TargetKey) -> Object:
        """Create a Node, as like the one that was deleted as may be."""
        log.info("creating node %s for target %s", target.node_name, target)
        role = await self._coexistence.role_label()
        return await self._writer.create(self._former.complete(virtual.registration(target, role)))

    async def _remove(self, name: str, node: Object | None) -> None:
        """Delete the Node of a Target that is gone; a Node that is not ours stays."""
        self._writer.forget(name)
        self._missing_links.forget(name)
        self._former.forget(name)
        target = target_key.of_node(node) if node is not None else None
        if node is None or target is None or objects.is_terminating(node):
            return

        if not self._targets.knows(target.namespace):
            log.debug("node %s stays: Targets of its namespace may not be read", name)
            return

        log.info("the Target of node %s is gone; removing the node", name)
        try:
            await self._client.delete(kinds.NODES, name, uid=objects.uid(node))
        except NotFound:
            log.debug("node %s is gone already", name)

    def _vouch(self, name: str) -> None:
        """Have the Lease of a Node renewed as long as there are both the Node and its Target."""
        node = self._nodes.store.get(name)
        if node is None or name not in self._wanted:
            self._leases.drop(name)
        else:
            self._leases.keep(name, objects.uid(node))

    def _namespace_of(self, name: str) -> str:
        return self._wanted[name].namespace if name in self._wanted else ""
