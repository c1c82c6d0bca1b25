"""Writes conditions into the status of Targets, and Events on them.

The status also records which cluster the Target is, for the next connection (`cluster_identity`). A
condition is written only when it changes; an Event is recorded whenever its status or reason does.
Only the leader writes, and never twice upon the same version of the object, so that others' writes
are neither fought nor doubled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from vnode.api import kinds, objects
from vnode.api.objects import Object, Objects
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.links import TargetKey
from vnode.targets import cluster_identity, conditions

log = logging.getLogger(__name__)


class TargetFinding(NamedTuple):
    """A Target as it is, the conditions that it should have, and the UID to record of its cluster,
    "" if none."""

    target: Object
    conditions: Objects
    cluster: str = ""


class Reporter:
    """Writes conditions of Targets and ClusterTargets; one for each term of a leader.

    `lookup` returns the present finding of a Target, None if there is none.
    """

    def __init__(
        self,
        local: Client,
        events: EventRecorder,
        lookup: Callable[[TargetKey], TargetFinding | None],
    ) -> None:
        self._local = local
        self._events = events
        self._lookup = lookup
        self._expectations = Expectations(self.wake)
        self._controller: Controller[TargetKey] = Controller(
            "target-reports", self._reconcile, workers=4
        )

    def wake(self, key: TargetKey) -> None:
        """Reconcile that Target: something may have been found."""
        self._controller.add(key)

    async def run(self) -> None:
        """Write until cancelled."""
        await self._controller.run()

    async def _reconcile(self, key: TargetKey) -> None:
        finding = self._lookup(key)
        if finding is None:
            self._expectations.forget(key)
            return

        target = finding.target
        if self._expectations.pending(key, target):
            return  # our last write is not in the informer yet; its event wakes this key

        status: Object = {}
        if (merged := conditions.merged(target, *finding.conditions)) is not None:
            status["conditions"] = merged

        if finding.cluster:
            status["clusterUID"] = finding.cluster

        if not status:
            return

        kind = kinds.TARGETS if key.namespace else kinds.CLUSTER_TARGETS
        body = {"status": status, "metadata": {"uid": objects.uid(target)}}
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
            if conditions.turned(finding.target, condition):
                type_ = NORMAL if condition["status"] == "True" else WARNING
                reason, message = condition["reason"], condition["message"]
                log.info("%s is %s: %s", key, reason, message)
                self._events.event(about, type_, reason, message)
