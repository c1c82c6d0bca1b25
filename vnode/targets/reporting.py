"""What is said of a Target where its user looks: conditions in its status, and Events on it.

The status also says which cluster the Target is, for whoever connects next (`cluster_identity`).
A condition holds for as long as it is true, and is written only if it changes; an Event tells of
each turn of one. Only the leader writes, and never twice upon the same version of the object, so
that what others write is neither fought nor doubled.
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
    """A Target as it is, conditions that it should have, and the UID of the cluster that it is, ""
    if it has that already, or nobody knows."""

    target: Object
    conditions: Objects
    cluster: str = ""


class Reporter:
    """Writes conditions of Targets and ClusterTargets; made anew for each term of a leader.

    `lookup` answers what is found of one at this moment, None if nothing is.
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
        """Something may have been found."""
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
            return  # a write of ours is on its way; what is found of its echo wakes us

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
            log.warning("%s cannot keep which cluster it is: apply the CRDs of this version", key)

        self._tell(key, objects.reference(target, kind.kind, kind.api_version), finding)

    def _tell(self, key: TargetKey, about: Object, finding: TargetFinding) -> None:
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
