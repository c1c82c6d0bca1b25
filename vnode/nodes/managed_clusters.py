"""Watches the ManagedClusters of Open Cluster Management for their taints, while they are served.

The CRD is watched by its name, and may come later. What is not known changes nothing: while the
kind is not served, before its first list, and for a cluster that is not in it, nobody can say which
taints a virtual node should have. A condition of the node tells people, who would not notice. A
ManagedCluster that is deleted takes its ClusterProfile with it, by which the Target ends; and one
that goes with its CRD was not deleted by anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.errors import Denied, VnodeError
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.nodes import member_taints
from vnode.nodes.member_taints import TaintSyncStatus
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.links import ClusterDescription
from vnode.runtime.served_kinds import ServedKind

_CRD_TASK: Final = "crd"
_CLUSTERS_TASK: Final = "clusters"
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
        self._local = local
        self._kind = ServedKind(local, kinds.MANAGED_CLUSTERS, self._on_kind)
        self._clusters: Informer | None = None  # while the kind is served
        self._tasks: KeyedTasks[str] | None = None
        self._changed: Callable[[str | None], None] = lambda _name: None

    def watch(self, tasks: KeyedTasks[str], changed: Callable[[str | None], None]) -> None:
        """Watch in these tasks; call `changed` with the name of a cluster whose taints are others
        now, with None if that may be so for all."""
        self._tasks, self._changed = tasks, changed
        tasks.start(_CRD_TASK, self._watch_kind, "managed-clusters-crd")

    def taints_of(self, description: ClusterDescription) -> Objects | None:
        """Return the taints of the cluster that an inventory so describes.

        Without a ManagedCluster in the description there are none; None if they are not known.
        """
        name = name_of(description)
        if not name:
            return []

        if self._clusters is None or not self._clusters.synced.is_set():
            return None

        cluster = self._clusters.store.get(name)
        return None if cluster is None else member_taints.of_cluster(cluster)

    def sync_status(self, description: ClusterDescription) -> TaintSyncStatus | None:
        """Return whether the taints of a cluster are followed; None if it has no ManagedCluster, or
        nothing is known yet."""
        name = name_of(description)
        if not name:
            return None

        if error := self._failure():
            return TaintSyncStatus(
                False, "ManagedClustersUnreadable", _UNREADABLE.format(error=error)
            )

        if self._clusters is None:
            if not self._kind.is_known:
                return None

            return TaintSyncStatus(False, "ManagedClustersNotServed", _NOT_SERVED)

        if not self._clusters.synced.is_set():
            return None

        if name not in self._clusters.store:
            why = f"taints are not synced: there is no ManagedCluster {name}"
            return TaintSyncStatus(False, "ManagedClusterNotFound", why)

        return TaintSyncStatus(True, "TaintsSynced", f"taints are those of ManagedCluster {name}")

    def _failure(self) -> VnodeError | None:
        """Return why ManagedClusters cannot be read; a fault that passes is none later on."""
        kind = self._kind.failure
        if kind is not None and (not self._kind.is_known or isinstance(kind, Denied)):
            return kind

        clusters = self._clusters
        error = clusters.failure if clusters is not None else None
        if clusters is None or not clusters.synced.is_set() or isinstance(error, Denied):
            return error

        return None

    async def _watch_kind(self) -> None:
        """Watch the CRD, and tell what comes of the first try: it may be no event."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._kind.run(), name="crd")
            await self._kind.wait_answered()
            self._changed(None)

    def _on_kind(self) -> None:
        served = self._kind.is_served
        if self._tasks is None or served == (self._clusters is not None):
            return

        if not served:
            self._clusters = None
            self._tasks.stop(_CLUSTERS_TASK)
            self._changed(None)
            return

        clusters = Informer(self._local, kinds.MANAGED_CLUSTERS, trim=_taints_only)
        clusters.subscribe(lambda old, new: self._on_cluster(clusters, old, new))
        self._clusters = clusters
        self._tasks.start(_CLUSTERS_TASK, lambda: self._run(clusters), "managed-clusters")

    async def _run(self, clusters: Informer) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(clusters.run(), name=clusters.kind.plural)
            await clusters.answered.wait()
            self._changed(None)
            await clusters.synced.wait()
            self._changed(None)

    def _on_cluster(self, clusters: Informer, old: Object | None, new: Object | None) -> None:
        """Tell of taints that changed: a ManagedCluster's status changes far more often."""
        if clusters is not self._clusters or not clusters.synced.is_set():
            return

        if old is None or new is None or objects.spec(old) != objects.spec(new):
            self._changed(objects.name(objects.latest(old, new)))


def name_of(description: ClusterDescription) -> str:
    """Return the name of the ManagedCluster that a ClusterProfile is of; "" if it does not say."""
    return description.labels.get(keys.OCM_CLUSTER_NAME, "")


def _taints_only(cluster: Object) -> Object:
    metadata = objects.metadata(cluster)
    kept = {field: metadata[field] for field in ("name", "uid", "resourceVersion")}
    return {"metadata": kept, "spec": {"taints": objects.spec(cluster).get("taints")}}
