"""A report in the text format of Prometheus, in the families of a kubelet. Pure.

Points carry the time of their reading: rates over two scrapes are right however old an answer is.
Written by hand, ten times as fast as by the client library: thousands of pods would hold up all
else that the agent does. Label values are names that the API server has checked, so that nothing in
them needs escaping.
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
    """Samples of one name: (labels in braces or "", value, Unix time of the reading or None)."""

    name: str
    kind: str
    meaning: str
    samples: Sequence[tuple[str, float, float | None]]


def gauge(family: str, meaning: str, value: float, **labels: str) -> MetricFamily:
    """A family of one value of now."""
    inner = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return MetricFamily(family, "gauge", meaning, [(f"{{{inner}}}" if inner else "", value, None)])


def render(families: Iterable[MetricFamily], comments: Iterable[str] = ()) -> bytes:
    """The families, each with its meaning, below some lines of comment."""
    lines = [f"# {' '.join(comment.split())}" for comment in comments]
    for family in families:
        name = family.name
        lines += [f"# HELP {name} {family.meaning}", f"# TYPE {name} {family.kind}"]
        for labels, value, time in family.samples:
            moment = "" if time is None else f" {round(time * 1000)}"
            lines.append(f"{name}{labels} {value!r}{moment}")

    return "".join(line + "\n" for line in lines).encode()


def resource(report: UsageReport) -> bytes:
    """`/metrics/resource`."""
    summed = _TARGET if report.whole_target else _OWN
    node = [("", report.node)] if report.node else []
    pods = [(f"{{{_labels(one)}}}", one.point) for one in report.pods]
    containers = [
        (f'{{container="{each.name}",{_labels(one)}}}', each)
        for one in report.pods
        for each in one.containers
    ]
    points = [(labels, each.point) for labels, each in containers]
    started: list[tuple[str, float, None]] = [(at, each.start, None) for at, each in containers]
    failed = 1.0 if report.problems else 0.0
    missed = "1 if something could not be read in the target, else 0."
    return render(
        [
            *_usage("node", f"of {summed}", node),
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


def _labels(one: PodUsage) -> str:
    return f'namespace="{objects.namespace(one.pod)}",pod="{objects.name(one.pod)}"'


def _usage(
    thing: str, whose: str, rows: Sequence[tuple[str, Point]]
) -> tuple[MetricFamily, MetricFamily]:
    return (
        MetricFamily(
            f"{thing}_cpu_usage_seconds_total",
            "counter",
            f"CPU time in core-seconds {whose}.",
            [(labels, point.cpu, point.time) for labels, point in rows],
        ),
        MetricFamily(
            f"{thing}_memory_working_set_bytes",
            "gauge",
            f"Working set in bytes {whose}.",
            [(labels, float(point.memory), point.time) for labels, point in rows],
        ),
    )
