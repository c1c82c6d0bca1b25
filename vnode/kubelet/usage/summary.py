"""Renders a report as `stats/summary` (v1alpha1) with CPU and memory, no more. No I/O."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.kubelet.usage.collector import ContainerUsage, PodUsage, UsageReport
from vnode.kubelet.usage.points import Point

_NANO: Final = 10**9


def render(name: str, created: str | None, report: UsageReport) -> Object:
    """Return the summary of the virtual node `name`; `created` is its creation time."""
    usage = _usage(report.node) if report.node else {}
    return {
        "node": {"nodeName": name, "startTime": created, **usage},
        "pods": [_pod(usage) for usage in report.pods],
    }


def _pod(usage: PodUsage) -> Object:
    pod = usage.pod
    return {
        "podRef": {
            "name": objects.name(pod),
            "namespace": objects.namespace(pod),
            "uid": objects.uid(pod),
        },
        "startTime": objects.status(pod).get("startTime"),
        "containers": [_container(container) for container in usage.containers],
        **_usage(usage.point),
    }


def _container(usage: ContainerUsage) -> Object:
    return {"name": usage.name, "startTime": _time(usage.start), **_usage(usage.point)}


def _usage(point: Point) -> Object:
    moment = _time(point.time)
    cpu: Object = {"time": moment, "usageCoreNanoSeconds": int(point.cpu * _NANO)}
    if point.cores is not None:
        cpu["usageNanoCores"] = int(point.cores * _NANO)

    return {"cpu": cpu, "memory": {"time": moment, "workingSetBytes": point.memory}}


def _time(moment: float) -> str:
    return objects.timestamp(datetime.fromtimestamp(moment, UTC))
