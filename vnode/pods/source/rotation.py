"""Limits and remembers which full targets a pod has asked, attempt by attempt.

Only the target itself knows whether it can make room, by growing or by preemption, and only for a
pod that it has. So a pod that has been rejected goes on to targets that it has not asked, each
after the back-off of the queue, until all were asked once; from then on, every attempt asks the one
that was asked longest ago. `CandidateProbe` chooses the targets; this module limits their cost.

Each further candidate costs writes in two clusters, and there are attempts for many reasons.
Thousands of pods that fit nowhere must not move their candidates about for ever: all of them
together get a bounded number of further candidates. The first of each pod is free, and each
namespace has a few that others cannot use up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from vnode.api import objects
from vnode.api.token_bucket import MinuteLimits, TokenBucket
from vnode.pods import chaperons
from vnode.pods.source.attempt import Attempt
from vnode.runtime.links import Links
from vnode.scheduling.queued_pod import QueuedPod
from vnode.scheduling.result import CycleResult

RATE: Final = 10.0  # further candidates a second, over time
BURST: Final = 600  # further candidates at once: a minute's worth
OWN_PER_MINUTE: Final = 30  # further candidates of each namespace, whatever others use
OWN_BURST: Final = 10


class Rotation:
    """Records in each queued pod which targets it has asked."""

    def __init__(self, links: Links) -> None:
        self._links = links
        self._further = TokenBucket(RATE, BURST)
        self._own: MinuteLimits[str] = MinuteLimits(OWN_BURST)

    def next(self, queued: QueuedPod, result: CycleResult, now: float) -> list[str]:
        """Return the nodes that did not pass on which the pod is to have a candidate all the same.

        None without a reservation: nothing would keep the pod from running there, and elsewhere.
        """
        if not result.nominated or chaperons.skips_reservation(queued.pod):
            return []

        return [
            node
            for node in result.nominated
            if not queued.asked or self._is_seen(node, queued) or self._take(queued, now)
        ]

    def _take(self, queued: QueuedPod, now: float) -> bool:
        return self._further.take(now) or self._own.take(queued.namespace, OWN_PER_MINUTE, now)

    def record(
        self, queued: QueuedPod, attempt: Attempt, result: CycleResult, reasons: Iterable[str]
    ) -> bool:
        """Record which targets a phase without a node has asked; return whether to ask others soon.

        That is so as long as each attempt asks a new target, so at most once for each.
        """
        went_on = any(node not in queued.asked for node in attempt.created)
        for node in reasons:
            queued.asked.setdefault(node, attempt.started)

        for node in (*attempt.created, *attempt.ranked[len(result.feasible) :]):
            queued.asked[node] = attempt.started

        return went_on and any(node not in queued.asked for node in result.full())

    def owes(self, queued: QueuedPod, result: CycleResult) -> bool:
        """Tell whether a target was to be asked for the first time, but for the limit."""
        return any(node not in queued.asked for node in result.nominated)

    def _is_seen(self, node: str, queued: QueuedPod) -> bool:
        link = self._links.get(node)
        if link is None:
            return False

        return link.candidate(objects.key(queued.pod), queued.uid) is not None
