"""Tells on the PodGroup of a gang where it stands: by Events, and on Kubernetes' own in its status.

The status of other PodGroups has an owner: scheduler-plugins' controller, which goes by the pods
and needs no scheduler, and Volcano. On Kubernetes' own the condition is applied without force: if
another has written it, kube-scheduler for example, the API server says so, and it is left to them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import Conflict, Denied, NotFound
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.gangs import group_status
from vnode.gangs.gang import Gang
from vnode.gangs.group_status import GroupReport
from vnode.gangs.membership import GangKey
from vnode.gangs.table import Gangs
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.pods.source.pod_groups import PodGroups
from vnode.runtime.links import Links

PACE: Final = 1.0
"""Seconds between two writes about a group."""

REWORDED: Final = 10.0
"""Seconds likewise, if nothing but the reason why it waits is another."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ToldReport:
    """What was told of a group last, and when (monotonic)."""

    uid: str
    report: GroupReport
    at: float


class GroupReporter:
    """Reports for one term of a leader."""

    def __init__(
        self,
        client: Client,
        gangs: Gangs,
        groups: PodGroups,
        links: Links,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._gangs = gangs
        self._groups = groups
        self._links = links
        self._events = events
        self._clock = clock
        self._told: dict[GangKey, ToldReport] = {}

    def forget(self, key: GangKey) -> None:
        """Drop what is known of a gang without pods."""
        self._told.pop(key, None)

    async def report(self, gang: Gang) -> float | None:
        """Tell of a gang; return the seconds after which to do so again."""
        link = self._links.get(gang.place())
        target = f"target {link.target}" if link is not None else gang.place()
        report = group_status.report(gang, self._gangs.minimum(gang), target)
        found = self._groups.get(gang.key) if report is not None else None
        if report is None or found is None:
            return None

        kind, group = found
        told = self._told.get(gang.key)
        if told is not None and told.uid == objects.uid(group):
            if told.report == report:
                return None

            pace = REWORDED if told.report.is_placed == report.is_placed else PACE
            if (left := told.at + pace - self._clock.monotonic()) > 0:
                return left

        self._told[gang.key] = ToldReport(objects.uid(group), report, self._clock.monotonic())
        if kind in kinds.NATIVE_GROUPS:
            await self._write(kind, group, report)

        if not gang.is_resumed:
            self._record(kind, group, report)

        return None

    def _record(self, kind: Kind, group: Object, report: GroupReport) -> None:
        about = objects.reference(group, kind.kind, kind.api_version)
        type_, reason = (NORMAL, "Scheduled") if report.is_placed else (WARNING, "FailedScheduling")
        self._events.event(about, type_, reason, report.message)

    async def _write(self, kind: Kind, group: Object, report: GroupReport) -> None:
        now = objects.timestamp(self._clock.now())
        condition = group_status.condition(kind, group, report, now)
        if condition is None:
            return

        names = ("name", "namespace", "uid")
        metadata = {name: objects.metadata(group)[name] for name in names}
        body = {"metadata": metadata, "status": {"conditions": [condition]}}
        try:
            await self._client.apply(kind, body, subresource="status", force=False)
        except (Conflict, NotFound) as error:
            log.info("the status of PodGroup %s is left alone: %s", objects.key(group), error)
        except Denied as error:
            log.warning(
                "the status of PodGroup %s cannot be written; give the agent the rights of this "
                "version (vnode install): %s",
                objects.key(group),
                error,
            )
