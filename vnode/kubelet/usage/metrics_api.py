"""Reads rates from the target's metrics API (`metrics.k8s.io`), one request for many pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from vnode.api import keys, kinds, objects, quantities
from vnode.api.clock import Clock
from vnode.api.errors import ConfigError
from vnode.api.objects import Objects
from vnode.api.slices import in_slices
from vnode.kube.client import Client
from vnode.kubelet.usage.findings import Findings
from vnode.kubelet.usage.points import Rate

_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|us|µs|ns|m|s)")
_INVALID: Final = (ConfigError, msgspec.ValidationError, ValueError, OverflowError)
_SECONDS: Final = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


class _MetricsMetadata(msgspec.Struct):
    name: str
    namespace: str = ""


class _Usage(msgspec.Struct):
    cpu: str | float
    memory: str | float


class _ContainerMetrics(msgspec.Struct):
    name: str
    usage: _Usage


class Metrics(msgspec.Struct):
    """Holds PodMetrics, which have containers, or NodeMetrics, which have a usage."""

    metadata: _MetricsMetadata
    timestamp: str
    window: str
    containers: list[_ContainerMetrics] = []
    usage: _Usage | None = None


async def read_pods(
    client: Client, namespace: str | None, selector: str, findings: Findings, clock: Clock
) -> None:
    """Read the pods that match, of all namespaces if none is named; errors are the client's."""
    items = await client.list(kinds.POD_METRICS, namespace, label_selector=selector)
    async for _ in in_slices(_note_pods(items, findings), clock):
        pass


def _note_pods(items: Objects, findings: Findings) -> Iterator[None]:
    """Note the usage of one container after the other, as this is iterated over."""
    for item in items:
        try:
            metrics = msgspec.convert(item, Metrics)
            key = (metrics.metadata.namespace, metrics.metadata.name)
            for container in metrics.containers:
                findings.container(key, container.name, rate(metrics, container.usage))
                yield
        except _INVALID as error:
            findings.problem(f"metrics of a pod are invalid: {error}")

        yield


async def read_nodes(client: Client, findings: Findings, clock: Clock) -> None:
    """Read the target's real nodes. Raises what the client raises."""
    items = await client.list(kinds.NODE_METRICS, label_selector=keys.REAL_NODES)
    findings.nodes = {}
    async for item in in_slices(items, clock):
        try:
            metrics = msgspec.convert(item, Metrics)
            if metrics.usage is not None:
                findings.node(metrics.metadata.name, rate(metrics, metrics.usage))
        except _INVALID as error:
            findings.problem(f"metrics of a node are invalid: {error}")


def rate(metrics: Metrics, usage: _Usage) -> Rate:
    """Return a usage with the time and window of its object. Raises `_INVALID`."""
    moment = objects.parse_timestamp(metrics.timestamp)
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"timestamp {metrics.timestamp[:40]!r}")

    return Rate(
        moment.timestamp(),
        seconds(metrics.window),
        quantities.nano(usage.cpu) / quantities.NANO,
        quantities.value(usage.memory),
    )


def seconds(duration: str) -> float:
    """Parse a duration as Go writes it, `1m10.5s`. Raises ValueError."""
    parts: Sequence[tuple[str, str]] = _PART.findall(duration)
    if "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"{duration[:32]!r} is not a duration")

    return float(sum(float(number) * _SECONDS[unit] for number, unit in parts))
