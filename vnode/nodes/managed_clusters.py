"""Watches the ManagedClusters of Open Cluster Management for their taints, while they are served.

The CRD is watched by its name, and may come later. What is not known changes nothing: while the
kind is not served, before its first list, and for a cluster that is not in it, nobody can say which
taints a virtual node should have. A condition of the node tells people, who would not notice. A
ManagedCluster that is deleted takes its ClusterProfile with it, by which the Target ends; and one
that goes with its CRD was not deleted by anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.nodes import member_taints
from vnode.nodes.member_taints import TaintSyncStatus
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.link import ClusterDescription
from vnode.runtime.served_informer import ServedInformer

_UNREADABLE: Final = (
    "taints are not synced: {error}; bind ClusterRole vnode-managed-clusters to the agent "
    "(managedClusterTaints.enabled of the chart); it is noticed within minutes"
)
_NOT_SERVED: Final = (
    f"taints are not synced: this cluster does not serve {kinds.MANAGED_CLUSTERS.resource} of "
    f"version {kinds.MANAGED_CLUSTERS.version}"
)


class ManagedClusters:
    """The taints of this hub's ManagedClusters, from `watch` on."""

    def __init__(self, local: Client) -> None:
        self._clusters = ServedInformer(
            local, kinds.MANAGED_CLUSTERS, self._on_cluster, trim=_taints_only
        )
        self._changed: Callable[[str | None], None] = lambda _name: None

    def watch(self, tasks: KeyedTasks[str], changed: Callable[[str | None], None]) -> None:
        """Watch in these tasks; call `changed` with the name of a cluster whose taints are others
        now, with None if that may be so for all."""
        self._changed = changed
        self._clusters.watch(tasks)

    def taints_of(self, description: ClusterDescription) -> Objects | None:
        """Return the taints of the cluster that an inventory so describes.

        Without a ManagedCluster in the description there are none; None if they are not known.
        """
        name = name_of(description)
        if not name:
            return []

        cluster = self._clusters.get(name) if self._clusters.is_known else None
        return None if cluster is None else member_taints.of_cluster(cluster)

    def sync_status(self, description: ClusterDescription) -> TaintSyncStatus | None:
        """Return whether the taints of a cluster are followed; None if it has no ManagedCluster, or
        nothing is known yet."""
        name = name_of(description)
        if not name:
            return None

        if error := self._clusters.failure:
            return TaintSyncStatus(
                False, "ManagedClustersUnreadable", _UNREADABLE.format(error=error)
            )

        if not self._clusters.is_known:
            return None

        if not self._clusters.is_served:
            return TaintSyncStatus(False, "ManagedClustersNotServed", _NOT_SERVED)

        if self._clusters.get(name) is None:
            why = f"taints are not synced: there is no ManagedCluster {name}"
            return TaintSyncStatus(False, "ManagedClusterNotFound", why)

        return TaintSyncStatus(True, "TaintsSynced", f"taints are those of ManagedCluster {name}")

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        """Tell of taints that changed: a ManagedCluster's status changes far more often."""
        if old is None or new is None or objects.spec(old) != objects.spec(new):
            self._changed(objects.name(objects.latest(old, new)) or None)


def name_of(description: ClusterDescription) -> str:
    """Return the name of the ManagedCluster that a ClusterProfile is of; "" if it does not say."""
    return description.labels.get(keys.OCM_CLUSTER_NAME, "")


def _taints_only(cluster: Object) -> Object:
    metadata = objects.metadata(cluster)
    kept = {field: metadata[field] for field in ("name", "uid", "resourceVersion")}
    return {"metadata": kept, "spec": {"taints": objects.spec(cluster).get("taints")}}
