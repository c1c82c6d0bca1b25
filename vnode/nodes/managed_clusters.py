"""Watches the ManagedClusters of Open Cluster Management for their taints, while they are served.

The CRD is watched by its name, and may come later. What is not known changes nothing: while the
kind is not served, before its first list, and for a cluster that is not in it, nobody can say which
taints a virtual node should have. A ManagedCluster that is deleted takes its ClusterProfile with
it, by which the Target ends; and one that goes with its CRD was not deleted by anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.nodes import member_taints
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.links import ClusterDescription
from vnode.runtime.served_kinds import ServedKind

_CRD_TASK: Final = "crd"
_CLUSTERS_TASK: Final = "clusters"


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
        tasks.start(_CRD_TASK, self._kind.run, "managed-clusters-crd")

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

    def _on_kind(self) -> None:
        served = self._kind.is_served
        if self._tasks is None or served == (self._clusters is not None):
            return

        if not served:
            self._clusters = None
            self._tasks.stop(_CLUSTERS_TASK)
            return

        clusters = Informer(self._local, kinds.MANAGED_CLUSTERS, trim=_taints_only)
        clusters.subscribe(lambda old, new: self._on_cluster(clusters, old, new))
        self._clusters = clusters
        self._tasks.start(_CLUSTERS_TASK, lambda: self._run(clusters), "managed-clusters")

    async def _run(self, clusters: Informer) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(clusters.run(), name=clusters.kind.plural)
            await clusters.synced.wait()
            self._changed(None)

    def _on_cluster(self, clusters: Informer, old: Object | None, new: Object | None) -> None:
        """Tell of taints that changed: a ManagedCluster's status changes far more often."""
        if clusters is not self._clusters or not clusters.synced.is_set() or new is None:
            return

        if old is None or objects.spec(old) != objects.spec(new):
            self._changed(objects.name(new))


def name_of(description: ClusterDescription) -> str:
    """Return the name of the ManagedCluster that a ClusterProfile is of; "" if it does not say."""
    return description.labels.get(keys.OCM_CLUSTER_NAME, "")


def _taints_only(cluster: Object) -> Object:
    metadata = objects.metadata(cluster)
    kept = {field: metadata[field] for field in ("name", "uid", "resourceVersion")}
    return {"metadata": kept, "spec": {"taints": objects.spec(cluster).get("taints")}}
