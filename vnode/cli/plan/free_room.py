"""Says how many more pods like one each cluster has room for, as the scheduler would. No I/O.

A policy without weights goes by it. What a target has free its ClusterSummary says; of one that was
not to be had there is what its virtual node offers, less the proxies that run there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import keys, objects, resources, saved_manifest
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.api.resources import Resources
from vnode.insight import accounts
from vnode.runtime.target_options import NO_OPTIONS, TargetOptions
from vnode.scheduling import reported, rooms
from vnode.scheduling.plugin import Handle
from vnode.scheduling.snapshot import VirtualNode, VirtualNodeInfo

_ORDINARY: Final[Resources] = {resources.CPU: 1000}
"""Of a pod that is not there yet."""


@dataclass(frozen=True, slots=True)
class ReportedTarget:
    """What a target says of itself, and what is said of it."""

    summary: Object | None = None
    """Its ClusterSummary as its vnode keeps it; None if there is none."""
    options: TargetOptions = NO_OPTIONS


_SILENT: Final = ReportedTarget()


def of_pod(
    pod: Object | None,
    nodes: Objects,
    told: Mapping[str, ReportedTarget],
    proxies: Iterable[Object],
) -> Mapping[str, int | None]:
    """Return room by virtual node, None where that is not known; `told` is by virtual node, too.

    Without a pod it is that for ordinary ones.
    """
    is_known = pod is not None and objects.spec(pod).get("containers")
    requests = resources.pod_requests(pod) if pod is not None and is_known else _ORDINARY
    used = _used(proxies)
    infos = [
        _info(node, told.get(objects.name(node), _SILENT), used.get(objects.name(node), {}))
        for node in nodes
    ]
    handle = Handle(namespace_refusal=lambda _namespace: "", constraints=_constraints)
    return rooms.rooms(pod or {}, requests, infos, handle)


def _used(proxies: Iterable[Object]) -> dict[str, Resources]:
    found: dict[str, Resources] = {}
    for pod in proxies:
        if (node := objects.node_name(pod)) and not objects.is_finished(pod):
            found[node] = resources.add(found.get(node, {}), accounts.requests(pod))

    return found


def _info(node: Object, told: ReportedTarget, used: Resources) -> VirtualNodeInfo:
    free, largest = reported.read_free(told.summary)
    return VirtualNodeInfo(
        VirtualNode(
            objects.name(node),
            node,
            ("", ""),
            allocatable=reported.read_allocatable(told.summary, node),
            unlisted=told.options.unlisted_resources,
            pools=told.options.node_pools,
        ),
        used,
        free,
        largest,
        reported.read_rows(told.summary),
    )


def _constraints(pod: Object) -> Object | None:
    """Return what the delegate's node is chosen by; None if that cannot be read.

    Whether the saved manifest is signed only the agent can tell: a plan shows, and sends nothing.
    """
    text = objects.annotations(pod).get(keys.SOURCE_POD_MANIFEST)
    if text is None:
        return objects.spec(pod)

    try:
        return saved_manifest.read(text)[1]
    except ConfigError:
        return None
