"""A report in the text format of Prometheus, in the families of a kubelet. Pure.

Points carry the time of their reading: rates over two scrapes are right however old an answer is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from vnode.api import objects
from vnode.kubelet.usage.collector import ContainerUsage, PodUsage, Report
from vnode.kubelet.usage.points import Point

Labels = Mapping[str, str]
Rows = list[tuple[Labels, Point]]

_POD: Final = ("namespace", "pod")
_CONTAINER: Final = ("container", *_POD)
_TARGET: Final = "all nodes of the target"
_OWN: Final = "the pods of this virtual node, since those of the target's nodes may not be read"


def resource(report: Report) -> bytes:
    """`/metrics/resource`."""
    pods: Rows = [(_pod_labels(one), one.point) for one in report.pods]
    containers = [(one, each) for one in report.pods for each in one.containers]
    rows: Rows = [(_container_labels(one, each), each.point) for one, each in containers]
    node: Rows = [({}, report.node)] if report.node else []
    summed = _TARGET if report.whole_target else _OWN
    started = GaugeMetricFamily(
        "container_start_time_seconds",
        "When the container started, in Unix time.",
        None,
        _CONTAINER,
    )
    for one, each in containers:
        started.add_metric(list(_container_labels(one, each).values()), each.start)

    return text(
        [
            _cpu("node", f"CPU time in core-seconds of {summed}.", (), node),
            _memory("node", f"Working set in bytes of {summed}.", (), node),
            _cpu("pod", "CPU time of the pod in core-seconds.", _POD, pods),
            _memory("pod", "Working set of the pod in bytes.", _POD, pods),
            _cpu("container", "CPU time of the container in core-seconds.", _CONTAINER, rows),
            _memory("container", "Working set of the container in bytes.", _CONTAINER, rows),
            started,
            *_errors(report),
        ],
        report.problems,
    )


def _errors(report: Report) -> list[Metric]:
    failed = 1.0 if report.problems else 0.0
    meaning = "1 if something could not be read in the target, else 0."
    return [
        GaugeMetricFamily(name, meaning, failed)
        for name in ("resource_scrape_error", "scrape_error")
    ]


def _cpu(thing: str, meaning: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = CounterMetricFamily(f"{thing}_cpu_usage_seconds", meaning, None, labels)
    for names, point in rows:
        family.add_metric(list(names.values()), point.cpu, timestamp=point.time)

    return family


def _memory(thing: str, meaning: str, labels: tuple[str, ...], rows: Rows) -> Metric:
    family = GaugeMetricFamily(f"{thing}_memory_working_set_bytes", meaning, None, labels)
    for names, point in rows:
        family.add_metric(list(names.values()), point.memory, point.time)

    return family


def _pod_labels(one: PodUsage) -> Labels:
    return {"namespace": objects.namespace(one.pod), "pod": objects.name(one.pod)}


def _container_labels(one: PodUsage, each: ContainerUsage) -> Labels:
    return {"container": each.name, **_pod_labels(one)}


class _Fixed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def text(families: Iterable[Metric], comments: Iterable[str] = ()) -> bytes:
    """The families, each with its meaning, below some lines of comment."""
    registry = CollectorRegistry()
    registry.register(_Fixed(families))
    head = "".join(f"# {' '.join(comment.split())}\n" for comment in comments)
    return head.encode() + generate_latest(registry)
