"""Computes a cluster's capacity and free resources: the contents of its ClusterSummary.

Pods change thousands of times as often as nodes do. So the requests of the pods on each node are
kept as running sums, one addition or subtraction an event, and a summary costs one pass over the
nodes, whatever the number of pods.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from vnode import __version__
from vnode.api import (
    keys,
    names,
    node_features,
    node_labels,
    objects,
    resources,
    source_usage,
    summary_reports,
)
from vnode.api.errors import ConfigError
from vnode.api.identity import Identity
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.api.rows import MODEL_LABELS
from vnode.nodes import row_building
from vnode.nodes.coexistence import SPREADS

_K = TypeVar("_K", bound=Hashable)

_AMOUNTS: Final = ("capacity", "allocatable")  # of a trimmed node, parsed
_SOURCE: Final = "source"  # of a trimmed delegate: the UID of the cluster that it is from

RUNNING_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of the pods that hold resources of a node."""


PLAIN_PODS: Final = f"{RUNNING_PODS},spec.schedulerName!={keys.PROXY_SCHEDULER}"
"""Likewise, of those but proxies, nearly all of which are on virtual nodes."""


def on_machine(proxy: Object | None) -> Object | None:
    """Return a trimmed proxy if it holds resources of a machine, to which somebody has bound it."""
    if proxy is None or objects.is_finished(proxy):
        return None

    name = objects.node_name(proxy)
    return trim_pod(proxy) if name and not names.may_be_virtual_node(name) else None


def trim_pod(pod: Object) -> Object:
    """Reduce a pod to its metadata's key fields, its node, its requests and its topology keys.

    Requests that cannot be parsed count as none, so that no pod hides the rest of the cluster.
    """
    metadata = objects.metadata(pod)
    try:
        requests = resources.pod_requests(pod)
    except ConfigError:
        requests = {resources.PODS: 1}

    kept = ("name", "namespace", "uid", "resourceVersion")
    trimmed: Object = {
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {"nodeName": objects.node_name(pod)},
        "requests": requests,
    }
    if source := objects.labels(pod).get(keys.PARENT_CLUSTER_UID):
        trimmed[_SOURCE] = source

    if spreads := node_labels.spread_keys(pod):
        trimmed[SPREADS] = spreads

    return trimmed


def trim_node(node: Object) -> Object:
    """Drop images, volumes and annotations: most of a Node's size, and not used here.

    Its amounts are parsed: summaries read them once a second, and they seldom change.
    """
    metadata, spec, status = objects.metadata(node), objects.spec(node), objects.status(node)
    kept = ("name", "uid", "resourceVersion", "labels", "deletionTimestamp")
    return {
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {
            "unschedulable": spec.get("unschedulable", False),
            "taints": spec.get("taints") or [],
        },
        "status": {
            "conditions": [objects.condition(node, "Ready") or {}],
            **{field: status[field] for field in node_features.FIELDS if field in status},
        },
        **{field: _amounts(status.get(field) or {}) for field in _AMOUNTS},
    }


class _Holding(NamedTuple):
    source: str  # "" for a pod that is no delegate
    node_name: str
    requests: Mapping[str, int]


class Usage:
    """Sums the requests of the pods on each node; takes each change of a trimmed pod."""

    def __init__(self) -> None:
        # Node -> resource -> sum over `_counted`; no zeros, and no empty dicts.
        self._sums: dict[str, Resources] = {}
        # Likewise of the delegates of each source: by its UID and the node.
        self._of_sources: dict[tuple[str, str], Resources] = {}
        # Pod key -> its source, its node, and the requests that are counted there.
        self._counted: dict[str, _Holding] = {}

    def of(self, node_name: str) -> Mapping[str, int]:
        """Return the sum on one node; it must not be changed."""
        return self._sums.get(node_name, {})

    def of_sources(self, nodes: Mapping[str, Collection[str]]) -> dict[str, Resources]:
        """Return what the delegates of each source hold on these nodes, by its UID.

        `nodes` are the resources of each: kubelets admit pods that ask for others, whatever these
        are called, and a few such pods would make more text than an object may have.
        """
        found: dict[str, Resources] = {}
        for (source, node_name), amounts in self._of_sources.items():
            if node_name in nodes:
                total = found.setdefault(source, {})
                for name in amounts.keys() & nodes[node_name]:
                    total[name] = total.get(name, 0) + amounts[name]

        return found

    def change(self, old: Object | None, new: Object | None) -> bool:
        """Count `new` in place of `old`; return whether any sum has changed."""
        key = objects.key(objects.latest(old, new))
        before, after = self._counted.pop(key, None), _holding(new)
        if after is not None:
            self._counted[key] = after

        if before == after:
            return False

        for holding, sign in ((before, -1), (after, 1)):
            if holding is not None:
                _add(self._sums, holding.node_name, holding.requests, sign)

            if holding is not None and holding.source:
                place = holding.source, holding.node_name
                _add(self._of_sources, place, holding.requests, sign)

        return True


def _add(sums: dict[_K, Resources], key: _K, requests: Mapping[str, int], sign: int) -> None:
    """Add to a sum, or take off; without zeros, and without empty sums."""
    amounts = sums.setdefault(key, {})
    for name, amount in requests.items():
        total = amounts.get(name, 0) + sign * amount
        if total:
            amounts[name] = total
        else:
            amounts.pop(name, None)

    if not amounts:
        del sums[key]


def summary(
    nodes: Iterable[Object],
    usage: Usage,
    cluster: Identity | None = None,
    *,
    classes: str = "",
    heartbeat: str = "",
    scheduler_silent: str = "",
    streams_namespace: str = "",
    model_labels: Sequence[str] = MODEL_LABELS,
) -> Object:
    """Build the ClusterSummary of a cluster, named by `cluster`, with these trimmed nodes.

    Capacity and allocatable are summed over nodes that are ready and schedulable. Tainted nodes
    count: some pods tolerate the taint, and would be kept away if the summary left these nodes out;
    rows say which they are. By `model_labels` rows tell nodes apart. `scheduler_silent` says since
    when the candidate scheduler is.
    """
    nodes = list(nodes)
    usable = [node for node in nodes if is_usable(node)]
    features = node_features.encode(node_features.common(usable))
    capacity = _sum(node["capacity"] for node in usable)
    allocatable = {objects.name(node): node["allocatable"] for node in usable}
    free = _free(allocatable, usage)
    return {
        "metadata": {
            "name": keys.SUMMARY_NAME,
            "labels": common_labels(nodes),
            "annotations": summary_reports.listed(
                {
                    keys.AGENT_VERSION: __version__,
                    keys.HEARTBEAT: heartbeat,
                    **_named(cluster),
                    **({keys.CLASSES: classes} if classes else {}),
                    **({keys.NODE_FEATURES: features} if features else {}),
                    **({keys.SCHEDULER_SILENT: scheduler_silent} if scheduler_silent else {}),
                    **({keys.STREAMS: streams_namespace} if streams_namespace else {}),
                    keys.FREE_RESOURCES: free_resources(free),
                    keys.ROWS: row_building.build(usable, free, model_labels, allocatable),
                    keys.USED_BY_SOURCES: source_usage.encode(usage.of_sources(allocatable)),
                }
            ),
        },
        "capacity": resources.format_list(capacity),
        "allocatable": resources.format_list(_sum(allocatable.values())),
    }


def _named(cluster: Identity | None) -> dict[str, str]:
    return {keys.CLUSTER_NAME: cluster.name, keys.CLUSTER_UID: cluster.uid} if cluster else {}


def is_usable(node: Object) -> bool:
    """Tell whether a node is ready, not cordoned, and not being deleted."""
    return (
        objects.is_ready(node)
        and not objects.spec(node).get("unschedulable")
        and not objects.is_terminating(node)
    )


def common_labels(nodes: Iterable[Object]) -> dict[str, str]:
    """Return the labels that have the same value on all nodes that have them."""
    values: dict[str, str] = {}
    several = set[str]()
    for node in nodes:
        for key, value in objects.labels(node).items():
            if values.setdefault(key, value) != value:
                several.add(key)

    return {key: value for key, value in values.items() if key not in several}


def free_resources(free: Mapping[str, Resources]) -> str:
    """Return JSON: free `sum` over all nodes, `largest` amount on one node, number of `nodes`.

    `largest` is taken for each resource separately, so it is an upper bound: the node with the most
    free CPU need not be the one with the most free memory.
    """
    text = {
        "sum": resources.format_list(_sum(free.values())),
        "largest": resources.format_list(resources.largest(free.values())),
        "nodes": len(free),
    }
    return msgspec.json.encode(text, order="sorted").decode()


def _free(allocatable: Mapping[str, Resources], usage: Usage) -> dict[str, Resources]:
    """Return what each node has free; one that is overcommitted (by static pods, say) nothing."""
    return {
        name: {n: max(0, amount) for n, amount in resources.subtract(all_, usage.of(name)).items()}
        for name, all_ in allocatable.items()
    }


def _holding(pod: Object | None) -> _Holding | None:
    """Return what a trimmed pod holds; None if it holds nothing."""
    node_name = objects.node_name(pod) if pod else ""
    if not pod or not node_name:
        return None

    return _Holding(pod.get(_SOURCE, ""), node_name, pod["requests"])


def _amounts(listed: Mapping[str, str]) -> Resources:
    amounts: Resources = {}
    for name, quantity in listed.items():
        try:
            amounts |= resources.parse({name: quantity})
        except ConfigError:
            continue

    return amounts


def _sum(lists: Iterable[Mapping[str, int]]) -> Resources:
    total: Resources = {}
    for amounts in lists:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount

    return total
