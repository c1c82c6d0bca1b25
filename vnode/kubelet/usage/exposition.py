"""Renders a report in the text format of Prometheus, in the families of a kubelet. No I/O.

Samples have the time of their reading: rates over two scrapes are right however old an answer is.
The client library would take ten times as long, and with thousands of pods block the agent. Label
values are names that the API server has validated, so that nothing in them needs escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from vnode.api import objects
from vnode.kubelet.usage.collector import PodUsage, UsageReport
from vnode.kubelet.usage.points import Point

_TARGET: Final = "all nodes of the target"
_OWN: Final = "the pods of this virtual node, since those of the target's nodes may not be read"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """Holds samples of one name: (labels in braces or "", value, Unix time or None for now)."""

    name: str
    kind: str
    meaning: str
    samples: Sequence[tuple[str, float, float | None]]


def gauge(family: str, meaning: str, value: float, **labels: str) -> MetricFamily:
    """Return a family of one present value."""
    inner = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return MetricFamily(family, "gauge", meaning, [(f"{{{inner}}}" if inner else "", value, None)])


def render(families: Iterable[MetricFamily], comments: Iterable[str] = ()) -> bytes:
    """Return the text of the families, each with its meaning, after some lines of comment."""
    lines = [f"# {' '.join(comment.split())}" for comment in comments]
    for family in families:
        name = family.name
        lines += [f"# HELP {name} {family.meaning}", f"# TYPE {name} {family.kind}"]
        for labels, value, time in family.samples:
            moment = "" if time is None else f" {round(time * 1000)}"
            lines.append(f"{name}{labels} {value!r}{moment}")

    return "".join(line + "\n" for line in lines).encode()


def resource(report: UsageReport) -> bytes:
    """Return the text of `/metrics/resource`."""
    scope = _TARGET if report.whole_target else _OWN
    node = [("", report.node)] if report.node else []
    pods = [(f"{{{_labels(pod)}}}", pod.point) for pod in report.pods]
    containers = [
        (f'{{container="{container.name}",{_labels(pod)}}}', container)
        for pod in report.pods
        for container in pod.containers
    ]
    points = [(labels, container.point) for labels, container in containers]
    started: list[tuple[str, float, None]] = [
        (labels, container.start, None) for labels, container in containers
    ]
    failed = 1.0 if report.problems else 0.0
    missed = "1 if something could not be read in the target, else 0."
    return render(
        [
            *_usage("node", f"of {scope}", node),
            *_usage("pod", "of the pod", pods),
            *_usage("container", "of the container", points),
            MetricFamily(
                "container_start_time_seconds",
                "gauge",
                "When the container started, in Unix time.",
                started,
            ),
            gauge("resource_scrape_error", missed, failed),
            gauge("scrape_error", missed, failed),
        ],
        report.problems,
    )


def _labels(usage: PodUsage) -> str:
    return f'namespace="{objects.namespace(usage.pod)}",pod="{objects.name(usage.pod)}"'


def _usage(
    prefix: str, scope: str, rows: Sequence[tuple[str, Point]]
) -> tuple[MetricFamily, MetricFamily]:
    return (
        MetricFamily(
            f"{prefix}_cpu_usage_seconds_total",
            "counter",
            f"CPU time in core-seconds {scope}.",
            [(labels, point.cpu, point.time) for labels, point in rows],
        ),
        MetricFamily(
            f"{prefix}_memory_working_set_bytes",
            "gauge",
            f"Working set in bytes {scope}.",
            [(labels, float(point.memory), point.time) for labels, point in rows],
        ),
    )
