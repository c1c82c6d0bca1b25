"""Handles attempts that found no node: what the pod's user reads, and when it is tried again.

A pod that nothing helps goes to the unschedulable ones, with the plugins that are against each
node, whose events wake it. It is tried again at once, after its back-off, where targets are left
that have not been asked, connect still, or could preempt others for it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict, VnodeError
from vnode.pods.source import quota_events
from vnode.pods.source.attempt import Attempt
from vnode.pods.source.gang_choice import ELSEWHERE
from vnode.pods.source.gang_rounds import GangRounds
from vnode.pods.source.preemption_chooser import PreemptionChooser
from vnode.pods.source.rotation import Rotation
from vnode.pods.source.unschedulable_reporter import UnschedulableReporter
from vnode.runtime.link_health import CONNECTING
from vnode.runtime.links import Links
from vnode.scheduling.events import ClusterEventWithHint, EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.result import CycleResult
from vnode.telemetry import metrics

CANDIDATES: Final = "Candidates"
"""Name in place of a plugin's for the queue, where a target rejected the candidate."""

REFUSED_CANDIDATES: Final = "RefusedCandidates"
"""Likewise, where a quota or a limit of the target refused the candidate's pod."""

_EVENTS: Final = frozenset(
    ClusterEventWithHint(kind)
    for kind in (
        EventKind.NODE_ALLOCATABLE,
        EventKind.TARGET_FREE,
        EventKind.TARGET_HEALTH,
        EventKind.TARGET_CHANGED,
        EventKind.OVERRIDES,
        EventKind.NODE_LABELS,  # by which override policies choose clusters
    )
)
REGISTRATIONS: Final = {
    CANDIDATES: _EVENTS,
    ELSEWHERE: frozenset(),
    REFUSED_CANDIDATES: _EVENTS | {ClusterEventWithHint(EventKind.TARGET_QUOTA)},
}
"""The events after which targets that rejected candidates are worth another attempt."""

_TOLD: Final = 10.0
"""Seconds in which users are not told again of a pod that waits for targets that connect."""


class FailureHandler:
    """Decides what comes after an attempt that found no node, and tells of it."""

    def __init__(
        self,
        links: Links,
        *,
        framework: Framework,
        queue: SchedulingQueue,
        rotation: Rotation,
        preemption: PreemptionChooser,
        reporter: UnschedulableReporter,
        gangs: GangRounds,
        clock: Clock,
    ) -> None:
        self._links = links
        self._framework = framework
        self._queue = queue
        self._rotation = rotation
        self._preemption = preemption
        self._reporter = reporter
        self._gangs = gangs
        self._clock = clock

    async def handle(
        self, queued: QueuedPod, attempt: Attempt, reasons: dict[str, str], result: CycleResult
    ) -> None:
        """Report why a pod has no node, and put it where its next attempt starts.

        `reasons` has, by node, why its candidates were rejected.
        """
        metrics.SCHEDULING_ATTEMPTS.labels("unschedulable").inc()
        if attempt.in_gang:
            self._gangs.ended(attempt, result, reasons)

        if reasons or not result.feasible:
            await self._report(queued, attempt, reasons, result)

        offers = attempt.offers
        again = await self._is_worth_another(queued, attempt, reasons, result)
        if attempt.retryable or again or attempt.offers > offers:
            self._queue.retry(queued.uid)
            return

        rejections = result.rejections()
        for node in reasons:
            rejections[node] = frozenset({self._refuser(queued, attempt, node)})

        self._queue.reject(queued.uid, rejections, result.state.retry_at)

    async def handle_error(
        self, queued: QueuedPod, attempt: Attempt, error: VnodeError, result: CycleResult
    ) -> None:
        """Have a pod tried again whose placing failed, and tell why if its API server refused.

        A Conflict says nothing.
        """
        if attempt.winner and isinstance(error, ApiError) and not isinstance(error, Conflict):
            why = f"this cluster does not bind the pod: {error.message}"
            with suppress(VnodeError):
                await self._reporter.report(queued.pod, result, {attempt.winner: why})

        self._queue.retry(queued.uid)
        self._gangs.failed(attempt, result, str(error))

    async def _is_worth_another(
        self, queued: QueuedPod, attempt: Attempt, reasons: dict[str, str], result: CycleResult
    ) -> bool:
        """Tell whether another attempt may end otherwise though nothing changes."""
        more = bool(reasons) and self._rotation.record(queued, attempt, result, reasons)
        if more and self._framework.nominates:
            return True

        if not reasons or attempt.in_gang:
            return False

        if self._waits_for_answer(result):
            return True

        if result.state.outcome.opens_more or self._rotation.owes(queued, result):
            return False

        return await self._preemption.choose(queued.pod, attempt)

    async def _report(
        self, queued: QueuedPod, attempt: Attempt, reasons: dict[str, str], result: CycleResult
    ) -> None:
        """Tell a pod's user why it has no node; while targets connect, not at each attempt."""
        now = self._clock.monotonic()
        if not attempt.ranked and self._waits_for_answer(result):
            self._queue.soon(queued.uid)
            if now < queued.told_at + _TOLD and not attempt.in_gang:
                return

        queued.told_at = now
        told = await self._reporter.report(queued.pod, result, reasons)
        if attempt.in_gang:
            self._gangs.unplaced(queued.uid, told)

    def _waits_for_answer(self, result: CycleResult) -> bool:
        """Tell whether nothing else keeps a pod off a target than that it still connects.

        Such an attempt says nothing of the pod, so that it is not to wait longer for the next one.
        """
        for node, status in result.statuses.items():
            link = self._links.get(node) if status.is_pending else None
            if link is not None and link.health.reason == CONNECTING:
                return True

        return False

    def _refuser(self, queued: QueuedPod, attempt: Attempt, node: str) -> str:
        """Return the plugin that is against a node, or what stands for its target's answer."""
        if (refusal := attempt.refused.get(node)) is not None:
            return refusal.plugin

        is_refused = quota_events.is_refused(self._links, queued.pod, node)
        return REFUSED_CANDIDATES if is_refused else CANDIDATES
