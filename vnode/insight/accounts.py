"""Sums and shares for `vnode top`. Pure."""

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
    """A target: what its virtual node offers, what our pods on it ask for, and what they use."""

    name: str
    status: str
    pods: int
    running: int
    allocatable: Resources
    requested: Resources
    used: Resources | None


@dataclass(frozen=True, slots=True)
class PodUse:
    """A proxy pod: what it asks for, and what it uses; None where no metrics are served."""

    namespace: str
    name: str
    target: str
    requested: Resources
    used: Resources | None


def of_targets(
    nodes: Iterable[Object], proxies: Iterable[Object], used: Mapping[str, Resources]
) -> list[TargetUse]:
    """One row a virtual node, by name; `used` is by the name of the node."""
    rows = {objects.name(node): node for node in nodes}
    counts = dict.fromkeys(rows, 0)
    running = dict.fromkeys(rows, 0)
    sums: dict[str, Resources] = {name: {} for name in rows}
    for pod in proxies:
        where = objects.node_name(pod)
        if where not in rows or objects.is_finished(pod):
            continue

        counts[where] += 1
        running[where] += objects.status(pod).get("phase") == "Running"
        sums[where] = resources.add(sums[where], requests(pod))

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
    """One row for each proxy that is bound and not finished; `used` is by key of the pod."""
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
    """What the pod asks for; a request that cannot be read counts as none."""
    try:
        return resources.pod_requests(pod)
    except ConfigError:
        return {}


def amounts(listed: Mapping[str, str | int] | None) -> Resources:
    """A resource list, without what cannot be read."""
    found: Resources = {}
    for name, quantity in (listed or {}).items():
        try:
            found |= resources.parse({name: quantity})
        except ConfigError:
            continue

    return found


def usage_of_pod(metrics: Object) -> Resources:
    """The sum over the containers of one PodMetrics."""
    total: Resources = {}
    for container in metrics.get("containers") or ():
        total = resources.add(total, amounts(container.get("usage")))

    return total


def cpu(found: Mapping[str, int] | None) -> str:
    """`250m`, as kubectl top has it."""
    return f"{found.get(_BY_CPU, 0)}m" if found is not None else "<unknown>"


def memory(found: Mapping[str, int] | None) -> str:
    """`128Mi`, as kubectl top has it."""
    return f"{found.get(_BY_MEMORY, 0) // _MIB}Mi" if found is not None else "<unknown>"


def fraction(part: Mapping[str, int] | None, whole: Mapping[str, int], name: str) -> float | None:
    """How much of what there is, 1.0 for all of it; None if either is not known."""
    return None if part is None or not whole.get(name) else part.get(name, 0) / whole[name]


def share(part: Mapping[str, int] | None, whole: Mapping[str, int], name: str) -> str:
    """`12%` of what there is."""
    found = fraction(part, whole, name)
    return "<unknown>" if found is None else f"{int(100 * found)}%"
