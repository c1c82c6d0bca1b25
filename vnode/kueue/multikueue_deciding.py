"""Decides which MultiKueueClusters and MultiKueueConfigs there are to be. Pure.

A cluster is a Target. Kueue asks the clusters of a config in their order, so the order counts as
well as who is in it; and it takes 20 at most, so that of more the first 20 are named. Objects
that somebody else has made are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vnode.api import keys, names, objects
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey

MOST: Final = 20
"""Clusters of a MultiKueueConfig, by Kueue's own limit."""

_LABELS: Final = {keys.MULTIKUEUE: ""}


@dataclass(frozen=True, slots=True)
class WorkerCluster:
    """A cluster to which Kueue is to send Jobs; `profile` is the ClusterProfile to reach it by."""

    target: TargetKey
    profile: str = ""

    @property
    def name(self) -> str:
        """The name of the MultiKueueCluster, and of the Secret by which Kueue reaches it."""
        return names.multikueue_cluster(self.target.namespace, self.target.name)

    @property
    def spec(self) -> Object:
        """The spec of the MultiKueueCluster."""
        if self.profile:
            return {"clusterSource": {"clusterProfileRef": {"name": self.profile}}}

        secret = {"location": self.name, "locationType": "Secret"}
        return {"clusterSource": {"kubeConfig": secret}}


@dataclass(slots=True)
class MultiKueuePlan:
    """What is to be written, in this order; `body` is of a new object, `patch` of one there is."""

    new_clusters: list[Object] = field(default_factory=list)
    changed_clusters: list[tuple[Object, Object]] = field(default_factory=list)
    new_configs: list[Object] = field(default_factory=list)
    changed_configs: list[tuple[Object, Object]] = field(default_factory=list)
    old_configs: list[Object] = field(default_factory=list)
    old_clusters: list[Object] = field(default_factory=list)
    """No config names these any more; a Workload may still be there."""
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """What does not fit in, by the name of the config."""
    foreign: list[str] = field(default_factory=list)
    """Configs that are wanted, and that somebody else has made."""


def is_ours(obj: Object) -> bool:
    """Tell whether an object was made by vnode."""
    return keys.MULTIKUEUE in objects.labels(obj)


def plan(
    wanted: Mapping[str, Sequence[WorkerCluster] | None],
    configs: Mapping[str, Object],
    clusters: Mapping[str, Object],
) -> MultiKueuePlan:
    """Compare what is wanted, by the name of the config, with what is there, by name.

    None is wanted of a config of which it is not known: it stays as it is, with its clusters.
    """
    found, named = MultiKueuePlan(), set[str]()
    for name, workers in wanted.items():
        config = configs.get(name)
        if workers is None:
            named.update(_clusters_of(config))
            continue

        if config is not None and not is_ours(config):
            found.foreign.append(name)
            continue

        kept = list({worker.name: worker for worker in workers}.values())
        if more := [worker.name for worker in kept[MOST:]]:
            found.left_out[name] = more

        _plan_config(found, name, config, [worker.name for worker in kept[:MOST]])
        for worker in kept[:MOST]:
            if worker.name not in named:
                named.add(worker.name)
                _plan_cluster(found, worker, clusters.get(worker.name))

    for name, config in configs.items():
        if name not in wanted and is_ours(config):
            found.old_configs.append(config)

    found.old_clusters += _unnamed(clusters, named)
    return found


def is_reordering(config: Object, patch: Object) -> bool:
    """Tell whether a patch of a config changes nothing but the order."""
    return sorted(_clusters_of(config)) == sorted(_clusters_of(patch))


def with_work(clusters: Iterable[Object], workloads: Iterable[Object]) -> list[Object]:
    """Return those of some clusters where a Workload runs or is to run."""
    used = {str(objects.status(workload).get("clusterName") or "") for workload in workloads}
    return [cluster for cluster in clusters if objects.name(cluster) in used]


def _unnamed(clusters: Mapping[str, Object], named: set[str]) -> list[Object]:
    return [obj for name, obj in clusters.items() if name not in named and is_ours(obj)]


def _plan_config(
    found: MultiKueuePlan, name: str, config: Object | None, clusters: list[str]
) -> None:
    spec = {"clusters": clusters}
    if not clusters:  # Kueue takes none without clusters
        if config is not None:
            found.old_configs.append(config)
    elif config is None:
        found.new_configs.append(_body(name, spec))
    elif _clusters_of(config) != clusters:
        found.changed_configs.append((config, {"spec": spec}))


def _plan_cluster(found: MultiKueuePlan, worker: WorkerCluster, cluster: Object | None) -> None:
    if cluster is None:
        found.new_clusters.append(_body(worker.name, worker.spec))
    elif is_ours(cluster) and _source(cluster) != _source({"spec": worker.spec}):
        # A merge patch keeps what it does not name, and exactly one source may be there.
        source = {**dict.fromkeys(_source(cluster)), **worker.spec["clusterSource"]}
        found.changed_clusters.append((cluster, {"spec": {"clusterSource": source}}))


def _body(name: str, spec: Object) -> Object:
    return {"metadata": {"name": name, "labels": dict(_LABELS)}, "spec": spec}


def _clusters_of(config: Object | None) -> list[str]:
    return list(objects.spec(config or {}).get("clusters") or ())


def _source(cluster: Object) -> dict[str, Any]:
    return dict(objects.spec(cluster).get("clusterSource") or {})
