"""What a virtual node tells of usage: the target's findings, under the names of the proxy pods.

One look serves all who ask within a few seconds, and those who ask meanwhile wait for it. The
points of the last look are kept, so that counters go on. A pod or container without a value is left
out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, TypeAlias

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kubelet.delegates import ServedNode, has_container
from vnode.kubelet.usage import points
from vnode.kubelet.usage.findings import Findings, PodKey, PodReading
from vnode.kubelet.usage.points import Point, Reading
from vnode.kubelet.usage.reader import TargetReader

SHARED: Final = 5.0  # seconds that a report is good for
_NODE: Final = "node"
_REMEMBERED: Final = 600.0  # seconds that a counter without readings is kept

_Key: TypeAlias = tuple[str, ...]
"""Of a counter: (UID, container), (UID,) for a pod, (_NODE, name) for a node of the target."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ContainerUsage:
    """A container that runs, since `start` (Unix time)."""

    name: str
    start: float
    point: Point


@dataclass(frozen=True, slots=True)
class PodUsage:
    """A proxy pod, and what its delegate uses."""

    pod: Object
    point: Point
    containers: tuple[ContainerUsage, ...]


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What a virtual node uses; `node` is None where that is not known.

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
        self._latest: tuple[float, UsageReport] | None = None
        self._said: tuple[str, ...] = ()

    async def report(self) -> UsageReport:
        """A report that is a few seconds old at most. Raises Refused without a connection."""
        async with self._one_at_a_time:
            if self._latest is None or self._clock.monotonic() >= self._latest[0]:
                report = await self._look()
                self._latest = (self._clock.monotonic() + SHARED, report)

            return self._latest[1]

    async def _look(self) -> UsageReport:
        link = self._node.link
        proxies: dict[PodKey, Object] = {}
        selector = ""
        for pod in self._node.pods():
            if (chaperon := link.candidate(objects.uid(pod))) is not None:
                proxies[(objects.namespace(chaperon), objects.name(chaperon))] = pod
                selector = _selector(chaperon)

        everywhere = not link.target.namespace
        found = await self._reader.read(
            link.client, proxies.keys(), selector, everywhere=everywhere
        )
        self._say(found.problems)
        oldest = self._clock.now().timestamp() - _REMEMBERED
        kept = {key: point for key, point in self._points.items() if point.time > oldest}
        report, self._points = build(proxies, found, kept)
        return report

    def _say(self, problems: Collection[str]) -> None:
        """Once for each change: a scraper comes every few seconds."""
        if (sorted_ := tuple(sorted(problems))) != self._said:
            self._said = sorted_
            shown = "; ".join(self._said[:3]) or "all is read again"
            log.info("usage of %s: %d problems: %s", self._node.name, len(self._said), shown)


def _selector(chaperon: Object) -> str:
    """Delegates carry the labels of their chaperons, among them the name of our cluster."""
    cluster = objects.labels(chaperon).get(keys.PARENT_CLUSTER_NAME, "")
    return f"{keys.PARENT_CLUSTER_NAME}={cluster}" if cluster else ""


def build(
    proxies: dict[PodKey, Object], found: Findings, before: dict[_Key, Point]
) -> tuple[UsageReport, dict[_Key, Point]]:
    """The report of a look, and the points to go on from at the next one. Pure."""
    after = dict(before)
    pods = [
        usage
        for key, pod in proxies.items()
        if key in found.pods and (usage := _pod(pod, found.pods[key], after)) is not None
    ]
    nodes = [
        _advance(after, (_NODE, name), reading) for name, reading in (found.nodes or {}).items()
    ]
    sum_ = points.together(nodes if found.nodes is not None else [usage.point for usage in pods])
    node = _advance(after, (_NODE,), sum_) if sum_ is not None else None
    return UsageReport(node, found.nodes is not None, tuple(pods), tuple(found.problems)), after


def _advance(known: dict[_Key, Point], key: _Key, reading: Reading) -> Point:
    known[key] = points.advance(known.get(key), reading)
    return known[key]


def _pod(pod: Object, reading: PodReading, known: dict[_Key, Point]) -> PodUsage | None:
    uid = objects.uid(pod)
    containers = []
    for name, start in _running(pod).items():
        recent = (
            points.since(start, reading.containers[name]) if name in reading.containers else None
        )
        if recent is not None:
            if (former := known.get((uid, name))) and former.time <= start:
                del known[(uid, name)]  # started anew since

            containers.append(ContainerUsage(name, start, _advance(known, (uid, name), recent)))

    if not containers:
        return None

    parts = [one.point for one in containers]
    whole = reading.whole or (points.together(parts) if (uid,) in known else None)
    if whole is None:
        known[(uid,)] = points.added(parts)
    else:
        _advance(known, (uid,), whole)

    return PodUsage(pod, known[(uid,)], tuple(containers))


def _running(pod: Object) -> dict[str, float]:
    """When each container that runs was started, in Unix time, by the target's word."""
    status = objects.status(pod)
    found: dict[str, float] = {}
    for field_ in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for entry in status.get(field_) or ():
            started = ((entry.get("state") or {}).get("running") or {}).get("startedAt")
            moment: datetime | None = objects.parse_timestamp(str(started)) if started else None
            name = str(entry.get("name"))
            if moment is not None and has_container(pod, name):  # a status is the target's word
                found[name] = moment.timestamp()

    return found
