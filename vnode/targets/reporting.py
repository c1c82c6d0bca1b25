"""Writes conditions into the status of Targets, and Events on them.

The status also records which cluster the Target is, for the next connection (`cluster_identity`). A
condition is written only when it changes; an Event is recorded whenever its status or reason does.
Only the leader writes, and never twice upon the same version of the object, so that others' writes
are neither fought nor doubled. A condition that keeps changing, because the target answers
something else each time, is written in intervals (`vnode.runtime.write_limits`).
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
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.links import Link
from vnode.runtime.write_limits import WriteLimiter
from vnode.targets import cluster_identity, conditions, name_conflicts
from vnode.targets.name_conflicts import NameConflicts

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
) -> Objects:
    """Build the conditions of a Target with a link; `credentials` is the one about their end."""
    built = [
        conditions.link_condition(target, link, now),
        credentials,
        conditions.agent(target, link, now),
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
        self._local = local
        self._events = events
        self._lookup = lookup
        self._expectations = Expectations(self.wake)
        self._limiter: WriteLimiter[TargetKey] = WriteLimiter(
            "targets", write_limits.TARGETS, clock
        )
        self._controller: Controller[TargetKey] = Controller(
            "target-reports", self._reconcile, workers=4, lane=lambda key: key.namespace, total=16
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
            self._expectations.forget(key)
            self._limiter.forget(key)
            return None

        target = finding.target
        if self._expectations.pending(key, target):
            return None  # our last write is not in the informer yet; its event wakes this key

        status: Object = {}
        if (merged := status_conditions.merged(target, *finding.conditions)) is not None:
            status["conditions"] = merged

        if finding.cluster:
            status["clusterUID"] = finding.cluster

        if not status:
            return None

        if wait := self._limiter.wait(key):
            return wait

        self._limiter.written(key)
        await self._write(key, finding, status)
        return None

    async def _write(self, key: TargetKey, finding: TargetFinding, status: Object) -> None:
        target = finding.target
        kind = kinds.scoped(kinds.TARGETS, key.namespace)
        body = objects.status_patch(target, status)
        after = await self._expectations.patch(
            self._local, kind, target, body, key=key, subresource="status"
        )
        if after is None:
            log.debug("%s is gone", key)
            return

        if "clusterUID" in status and not cluster_identity.recorded(after):
            log.warning("%s cannot record its cluster: apply the CRDs of this version", key)

        self._record_events(key, objects.reference(target, kind.kind, kind.api_version), finding)

    def _record_events(self, key: TargetKey, about: Object, finding: TargetFinding) -> None:
        before = cluster_identity.recorded(finding.target)
        if before and finding.cluster:
            text = f"the cluster is {finding.cluster} from now on, as confirmed; it was {before}"
            log.info("%s: %s", key, text)
            self._events.event(about, NORMAL, "ClusterConfirmed", text)

        for condition in finding.conditions:
            if status_conditions.turned(finding.target, condition):
                type_ = NORMAL if condition["status"] == "True" else WARNING
                reason, message = condition["reason"], condition["message"]
                log.info("%s is %s: %s", key, reason, message)
                self._events.event(about, type_, reason, message)
