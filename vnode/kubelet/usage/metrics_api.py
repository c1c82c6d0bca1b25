"""The target's metrics API (`metrics.k8s.io`): rates, one request for many."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from vnode.api import keys, kinds, objects, quantities
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kubelet.usage.findings import Findings
from vnode.kubelet.usage.points import Rate

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|us|µs|ns|m|s)")
_SECONDS: Final = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


async def read_pods(
    client: Client, namespace: str | None, selector: str, findings: Findings
) -> None:
    """Pods that match, of all namespaces if none is named. Raises what the client raises."""
    for item in await client.list(kinds.POD_METRICS, namespace, label_selector=selector):
        try:
            rates = {str(c["name"]): rate(item, c) for c in item.get("containers") or ()}
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            findings.problems.append(f"metrics of pod {objects.key(item)} make no sense: {error!r}")
            continue

        if rates:
            findings.pod((objects.namespace(item), objects.name(item))).containers.update(rates)


async def read_nodes(client: Client, findings: Findings) -> None:
    """The target's own nodes. Raises what the client raises."""
    items = await client.list(kinds.NODE_METRICS, label_selector=keys.REAL_NODES)
    findings.nodes = {}
    for item in items:
        try:
            findings.node(objects.name(item), rate(item, item))
        except (ConfigError, KeyError, TypeError, ValueError) as error:
            findings.problems.append(f"metrics of node {objects.name(item)}: {error!r}")


def rate(item: Object, used: Object) -> Rate:
    """One `usage`, with time and window of the PodMetrics or NodeMetrics that it is in."""
    moment = objects.parse_timestamp(str(item["timestamp"]))
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"timestamp {item['timestamp']}")

    usage = used["usage"]
    return Rate(
        moment.timestamp(),
        seconds(str(item["window"])),
        quantities.nano(usage["cpu"]) / quantities.NANO,
        quantities.value(usage["memory"]),
    )


def seconds(duration: str) -> float:
    """A duration as Go writes it, `1m10.5s`. Raises ValueError."""
    parts: Sequence[tuple[str, str]] = _PART.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"{duration[:32]!r} is not a duration")

    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))
