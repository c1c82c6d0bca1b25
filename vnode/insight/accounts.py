"""Computes the sums and shares of `vnode top`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import objects, resources
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.api.resources import Resources
from vnode.insight import status_text

_MIB: Final = 1 << 20
_BY_CPU, _BY_MEMORY = "cpu", "memory"


@dataclass(frozen=True, slots=True)
class TargetUse:
    """A target: its virtual node's allocatable resources, its pods' requests, and their usage."""

    name: str
    status: str
    pods: int
    running: int
    allocatable: Resources
    requested: Resources
    used: Resources | None


@dataclass(frozen=True, slots=True)
class PodUse:
    """A proxy pod: its requests, and its usage; None where no metrics are served."""

    namespace: str
    name: str
    target: str
    requested: Resources
    used: Resources | None


def of_targets(
    nodes: Iterable[Object], proxies: Iterable[Object], used: Mapping[str, Resources]
) -> list[TargetUse]:
    """Return one row for each virtual node, sorted by name; `used` is by the node's name."""
    rows = {objects.name(node): node for node in nodes}
    counts = dict.fromkeys(rows, 0)
    running = dict.fromkeys(rows, 0)
    sums: dict[str, Resources] = {name: {} for name in rows}
    for pod in proxies:
        node_name = objects.node_name(pod)
        if node_name not in rows or objects.is_finished(pod):
            continue

        counts[node_name] += 1
        running[node_name] += objects.status(pod).get("phase") == "Running"
        sums[node_name] = resources.add(sums[node_name], requests(pod))

    return [
        TargetUse(
            status_text.node_target(node) or name,
            status_text.node_status(node),
            counts[name],
            running[name],
            amounts(objects.status(node).get("allocatable")),
            sums[name],
            used.get(name),
        )
        for name, node in sorted(rows.items())
    ]


def of_pods(
    proxies: Iterable[Object], targets: Mapping[str, str], used: Mapping[str, Resources]
) -> list[PodUse]:
    """Return one row for each proxy that is bound and not finished; `used` is by the pod's key."""
    return sorted(
        (
            PodUse(
                objects.namespace(pod),
                objects.name(pod),
                targets.get(node, node),
                requests(pod),
                used.get(objects.key(pod)),
            )
            for pod in proxies
            if (node := objects.node_name(pod))
            and status_text.is_proxy(pod)
            and not objects.is_finished(pod)
        ),
        key=lambda row: (row.namespace, row.name),
    )


def requests(pod: Object) -> Resources:
    """Return the pod's requests; one that cannot be parsed counts as none."""
    try:
        return resources.pod_requests(pod)
    except ConfigError:
        return {}


def amounts(listed: Mapping[str, str | int] | None) -> Resources:
    """Parse a resource list; quantities that cannot be parsed are left out."""
    found: Resources = {}
    for name, quantity in (listed or {}).items():
        try:
            found |= resources.parse({name: quantity})
        except ConfigError:
            continue

    return found


def usage_of_pod(metrics: Object) -> Resources:
    """Sum the usage of the containers of one PodMetrics."""
    total: Resources = {}
    for container in metrics.get("containers") or ():
        total = resources.add(total, amounts(container.get("usage")))

    return total


def cpu(found: Mapping[str, int] | None) -> str:
    """Format CPU as kubectl top does: `250m`."""
    return f"{found.get(_BY_CPU, 0)}m" if found is not None else "<unknown>"


def memory(found: Mapping[str, int] | None) -> str:
    """Format memory as kubectl top does: `128Mi`."""
    return f"{found.get(_BY_MEMORY, 0) // _MIB}Mi" if found is not None else "<unknown>"


def fraction(part: Mapping[str, int] | None, whole: Mapping[str, int], name: str) -> float | None:
    """Return the fraction of one resource, 1.0 for all of it; None if either is not known."""
    return None if part is None or not whole.get(name) else part.get(name, 0) / whole[name]


def share(part: Mapping[str, int] | None, whole: Mapping[str, int], name: str) -> str:
    """Format the fraction of one resource as `12%`."""
    found = fraction(part, whole, name)
    return "<unknown>" if found is None else f"{int(100 * found)}%"
