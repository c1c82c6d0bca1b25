"""Collects the usage of a virtual node: the target's findings, under the names of the proxy pods.

A report is shared by all requests of a few seconds, and requests wait for one that is being made. A
node may have thousands of pods, and a pod a hundred containers: they are gone through in slices. A
container that has just started is looked for sooner, since its target has no value at first.
The points of the last one are kept, so that counters go on. A pod or container without a value is
left out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.kubelet.delegates import ServedNode, container_names
from vnode.kubelet.usage import points
from vnode.kubelet.usage.findings import Findings, PodKey, PodReading
from vnode.kubelet.usage.points import Point, Reading
from vnode.kubelet.usage.reader import TargetReader

SHARED: Final = 5.0  # seconds for which a report is served
SHARED_WHILE_STARTING: Final = 1.0  # if it has no value of a container that has just started
STARTING: Final = 60.0  # seconds after which the target is taken to have no value of a container
_NODE: Final = "node"
_REMEMBERED: Final = 600.0  # seconds that a counter without readings is kept

_Key: TypeAlias = tuple[str, ...]
"""Key of a counter: (UID, container), (UID,) for a pod, (_NODE, name) for a node of the target."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """Usage of a container that has been running since `start` (Unix time)."""

    name: str
    start: float
    point: Point


@dataclass(frozen=True, slots=True)
class PodUsage:
    """Usage of a delegate, with its proxy pod."""

    pod: Object
    point: Point
    containers: tuple[ContainerUsage, ...]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """Usage of a virtual node; `node` is None if it is not known.

    `whole_target`: `node` is about all nodes of the target, else about the node's own pods.
    """

    node: Point | None = None
    whole_target: bool = False
    pods: tuple[PodUsage, ...] = ()
    problems: tuple[str, ...] = field(default=())


class Collector:
    """Makes the reports of one virtual node."""

    def __init__(self, node: ServedNode, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._reader = TargetReader(clock)
        self._points: dict[_Key, Point] = {}
        self._one_at_a_time = asyncio.Lock()
        self._latest: tuple[float, UsageReport] | None = None  # and when it was made (monotonic)
        self._logged: tuple[str, ...] = ()

    async def report(self) -> UsageReport:
        """Return a report that is a few seconds old at most. Raises Refused without a link."""
        async with self._one_at_a_time:
            if self._latest is None or await self._is_old(*self._latest):
                report = await self._read()
                self._latest = (self._clock.monotonic(), report)

            return self._latest[1]

    async def _is_old(self, made_at: float, report: UsageReport) -> bool:
        age = self._clock.monotonic() - made_at
        return age >= SHARED or (age >= SHARED_WHILE_STARTING and await self._lacks(report))

    async def _lacks(self, report: UsageReport) -> bool:
        """Tell whether a container has just started, and the report has no value of it."""
        latest = self._clock.now().timestamp() - STARTING
        known = dict[str, set[str]]()
        async for usage in in_slices(report.pods, self._clock):
            known[objects.uid(usage.pod)] = {container.name for container in usage.containers}

        async for pod in in_slices(self._node.pods(), self._clock):
            names = known.get(objects.uid(pod), ())
            if any(start > latest and name not in names for name, start in _running(pod).items()):
                return True

        return False

    async def _read(self) -> UsageReport:
        link = self._node.link
        proxies: dict[PodKey, Object] = {}
        selector = ""
        async for pod in in_slices(self._node.pods(), self._clock):
            if (chaperon := link.candidate(objects.key(pod), objects.uid(pod))) is not None:
                proxies[(objects.namespace(chaperon), objects.name(chaperon))] = pod
                selector = _selector(chaperon)

        everywhere = not link.target.namespace
        findings = await self._reader.read(
            link.client, proxies.keys(), selector, everywhere=everywhere
        )
        self._log(findings.problems)
        oldest = self._clock.now().timestamp() - _REMEMBERED
        points_ = dict[_Key, Point]()
        async for key, point in in_slices(self._points.items(), self._clock):
            if point.time > oldest:
                points_[key] = point

        usages = pod_usages(proxies, findings, points_)
        pods = [usage async for usage in in_slices(usages, self._clock)]
        self._points = points_
        return await asyncio.to_thread(build, pods, findings, points_)

    def _log(self, problems: Collection[str]) -> None:
        """Log problems once for each change, since scrapers come every few seconds."""
        if (sorted_ := tuple(sorted(problems))) != self._logged:
            self._logged = sorted_
            summary = "; ".join(sorted_[:3]) or "everything can be read again"
            log.info("usage of %s: %d problems: %s", self._node.name, len(sorted_), summary)


def _selector(chaperon: Object) -> str:
    """Return the selector for our delegates, which have the label of their chaperon's cluster."""
    cluster = objects.labels(chaperon).get(keys.PARENT_CLUSTER_NAME, "")
    return f"{keys.PARENT_CLUSTER_NAME}={cluster}" if cluster else ""


def pod_usages(
    proxies: Mapping[PodKey, Object], findings: Findings, known: dict[_Key, Point]
) -> Iterator[PodUsage]:
    """Yield the usage of each pod that was found; its points go on from those that are `known`."""
    for key, pod in proxies.items():
        if key in findings.pods and (usage := _pod(pod, findings.pods[key], known)) is not None:
            yield usage


def build(pods: Collection[PodUsage], findings: Findings, known: dict[_Key, Point]) -> UsageReport:
    """Return the report of pods and findings; points of nodes go on from those `known`, too."""
    nodes = [
        _advance(known, (_NODE, name), reading) for name, reading in (findings.nodes or {}).items()
    ]
    whole_target = findings.nodes is not None
    sum_ = points.sum_rates(nodes if whole_target else [usage.point for usage in pods])
    node = _advance(known, (_NODE,), sum_) if sum_ is not None else None
    return UsageReport(node, whole_target, tuple(pods), tuple(findings.problems))


def _advance(known: dict[_Key, Point], key: _Key, reading: Reading) -> Point:
    known[key] = points.advance(known.get(key), reading)
    return known[key]


def _pod(pod: Object, reading: PodReading, known: dict[_Key, Point]) -> PodUsage | None:
    uid = objects.uid(pod)
    containers = []
    for name, start in _running(pod).items():
        recent = (
            points.clip(start, reading.containers[name]) if name in reading.containers else None
        )
        if recent is not None:
            if (former := known.get((uid, name))) and former.time <= start:
                del known[(uid, name)]  # restarted since

            containers.append(ContainerUsage(name, start, _advance(known, (uid, name), recent)))

    if not containers:
        return None

    parts = [container.point for container in containers]
    whole = reading.whole or (points.sum_rates(parts) if (uid,) in known else None)
    if whole is None:
        known[(uid,)] = points.sum_points(parts)
    else:
        _advance(known, (uid,), whole)

    return PodUsage(pod, known[(uid,)], tuple(containers))


def _running(pod: Object) -> dict[str, float]:
    """Return the start of each running container in Unix time, as the target reports it."""
    status = objects.status(pod)
    starts, specified = dict[str, float](), container_names(pod)
    for field_ in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(field_) or ():
            started = ((entry.get("state") or {}).get("running") or {}).get("startedAt")
            moment: datetime | None = objects.parse_timestamp(str(started)) if started else None
            name = str(entry.get("name"))
            if moment is not None and name in specified:  # the target may report any name
                starts[name] = moment.timestamp()

    return starts
