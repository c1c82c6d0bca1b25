"""Puts together what keeps virtual nodes; ports and certificate are those of the kubelet API."""

from __future__ import annotations

from vnode.agent.kubelet_api import KubeletApi
from vnode.agent.shared import Shared
from vnode.api.identity import Identity
from vnode.api.resources import Resources
from vnode.nodes import own_share
from vnode.nodes.coexistence import Coexistence
from vnode.nodes.controller import NodeController
from vnode.nodes.managed_clusters import ManagedClusters
from vnode.runtime.link import Link
from vnode.scheduling import reported


def make(shared: Shared, kubelet: KubeletApi, coexistence: Coexistence) -> NodeController:
    """Make what keeps them for one term; it hears of ports and certificates of the kubelet API."""
    config = shared.options.config
    tainting = config.inventory.managed_cluster_taints
    is_shared = config.kueue.allocatable_without_others

    def own_share_of(link: Link) -> Resources | None:
        return _own_share(link, shared.identity)

    nodes = NodeController(
        shared.client,
        shared.nodes,
        shared.links,
        shared.targets,
        advertise_address=shared.options.address,
        port_of=kubelet.port_of,
        certificate_health=lambda: kubelet.certificate.health,
        managed_clusters=ManagedClusters(shared.client) if tainting else None,
        coexistence=coexistence,
        former=shared.former_nodes,
        leases=shared.node_leases,
        own_share_of=own_share_of if is_shared else None,
        clock=shared.clock,
    )
    kubelet.subscribe(nodes.refresh)
    kubelet.certificate.subscribe(nodes.refresh_all)
    return nodes


def _own_share(link: Link, identity: Identity) -> Resources | None:
    """Return what a target has for this cluster, beside what others use; None if unknown."""
    if link.lacks_vnode or link.summary is None:
        return None

    free, _largest = reported.read_free(link.summary)
    return own_share.share(link.summary, identity.uid, free)
