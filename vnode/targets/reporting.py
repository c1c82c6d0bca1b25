"""Writes conditions into the status of Targets, and Events on them.

The status also records which cluster the Target is, for the next connection (`cluster_identity`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from vnode.api import kinds, objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.objects import Object, Objects
from vnode.api.target_key import TargetKey
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, EventRecorder
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.link import Link
from vnode.runtime.status_reporter import StatusReporter
from vnode.targets import cluster_identity, conditions, name_conflicts, target_conditions
from vnode.targets.name_conflicts import NameConflicts
from vnode.telemetry import audit

log = logging.getLogger(__name__)


class TargetFinding(NamedTuple):
    """A Target as it is, the conditions that it should have, and the UID to record of its cluster,
    "" if none."""

    target: Object
    conditions: Objects
    cluster: str = ""


def found(
    target: Object,
    link: Link,
    credentials: Object | None,
    conflicts: NameConflicts,
    name: str,
    now: datetime,
    monotonic: float,
) -> Objects:
    """Build the conditions of a Target with a link; `credentials` is the one about their end."""
    built = [
        target_conditions.link_ready(target, link, now, monotonic),
        target_conditions.link_condition(target, link, now),
        credentials,
        target_conditions.agent(target, link, now),
        target_conditions.self_target(target, link, now),
        target_conditions.pools(target, now),
    ]
    if link.synced:
        built.append(name_conflicts.condition(target, name, conflicts.clusters, now))

    return [condition for condition in built if condition is not None]


class Reporter:
    """Writes conditions of Targets and ClusterTargets; one for each term of a leader.

    `lookup` returns the present finding of a Target, None if there is none.
    """

    def __init__(
        self,
        local: Client,
        events: EventRecorder,
        lookup: Callable[[TargetKey], TargetFinding | None],
        clock: Clock,
    ) -> None:
        self._events = events
        self._lookup = lookup
        self._reports = StatusReporter(
            local,
            "targets",
            write_limits.TARGETS,
            wake=self.wake,
            events=events,
            clock=clock,
            is_news=status_conditions.turned_unless(conditions.CONNECTED),
        )
        self._controller: Controller[TargetKey] = Controller(
            "target-reports",
            self._reconcile,
            subject=audit.of_target,
            workers=4,
            lane=lambda key: key.namespace,
            total=16,
        )

    def wake(self, key: TargetKey) -> None:
        """Reconcile that Target: something may have been found."""
        self._controller.add(key)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._controller.run()

    async def _reconcile(self, key: TargetKey) -> float | None:
        finding = self._lookup(key)
        if finding is None:
            self._reports.forget(key)
            return None

        target = finding.target
        if self._reports.pending(key, target):
            return None

        def told(after: Object) -> None:
            self._tell_cluster(key, finding, after)

        status = {
            "conditions": status_conditions.merged(target, *finding.conditions),
            "clusterUID": finding.cluster or None,
        }
        kind = kinds.scoped(kinds.TARGETS, key.namespace)
        return await self._reports.report(key, kind, target, status, told)

    def _tell_cluster(self, key: TargetKey, finding: TargetFinding, after: Object) -> None:
        """Tell that another cluster was confirmed; warn if the API server does not keep which."""
        if finding.cluster and not cluster_identity.recorded(after):
            log.warning("%s cannot record its cluster: apply the CRDs of this version", key)

        before = cluster_identity.recorded(finding.target)
        if before and finding.cluster:
            kind = kinds.scoped(kinds.TARGETS, key.namespace)
            about = objects.reference(finding.target, kind.kind, kind.api_version)
            text = f"the cluster is {finding.cluster} from now on, as confirmed; it was {before}"
            log.info("%s: %s", key, text)
            self._events.event(about, NORMAL, "ClusterConfirmed", text)
