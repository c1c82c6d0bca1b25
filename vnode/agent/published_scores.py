"""Puts together what publishes scores of targets, of what these report as free."""

from __future__ import annotations

from vnode.agent.shared import Shared
from vnode.kube.events import EventRecorder
from vnode.runtime.link import Link
from vnode.scheduling import reported
from vnode.scores.publisher import ScorePublisher
from vnode.scores.room import ReportedRoom


def make(shared: Shared, events: EventRecorder) -> ScorePublisher:
    """Make what publishes them for one term."""
    return ScorePublisher(
        shared.client,
        shared.links,
        shared.options.config.scores,
        report_of=_reported_room,
        cluster_of=shared.ocm_name,
        find_target=shared.targets.get,
        events=events,
        clock=shared.clock,
    )


def _reported_room(link: Link) -> ReportedRoom | None:
    """Return what a target reports as free, while it answers and its agent lives."""
    if not link.health.healthy or not link.runs_vnode:
        return None

    free, largest = reported.read_free(link.summary)
    if free is None or largest is None:
        return None

    return ReportedRoom(free, largest, reported.read_rows(link.summary))
