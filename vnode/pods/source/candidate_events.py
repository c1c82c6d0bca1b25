"""Feeds the scheduler with what targets say of candidates: chaperons -> queue, cache and attempts.

An answer wakes the attempt at its pod; without one, it has the pod tried again. What a target's
quotas refuse or take is counted for pods alike, too.
"""

from __future__ import annotations

from vnode.api import keys, objects
from vnode.api.clock import Clock
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.pods import preemption
from vnode.pods.source import candidates
from vnode.pods.source.attempts import Attempts
from vnode.pods.source.candidate_phase import CandidatePhase
from vnode.pods.source.candidates import CandidateState
from vnode.pods.source.preemption_chooser import PreemptionChooser
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.queue import SchedulingQueue


class CandidateEvents:
    """Updates what the scheduler keeps from callbacks of links; it has no task of its own."""

    def __init__(
        self,
        proxies: Informer,
        links: Links,
        *,
        attempts: Attempts,
        queue: SchedulingQueue,
        cache: Cache,
        assumptions: Assumptions,
        candidate_phase: CandidatePhase,
        preemption: PreemptionChooser,
        clock: Clock,
    ) -> None:
        self._proxies = proxies
        self._links = links
        self._attempts = attempts
        self._queue = queue
        self._cache = cache
        self._assumptions = assumptions
        self._candidate_phase = candidate_phase
        self._preemption = preemption
        self._clock = clock

    def open(self) -> None:
        """Subscribe to links; those that exist are added at once."""
        self._links.subscribe(self._on_link, lambda _link: self._attempts.wake_all())

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(lambda old, new: self._on_chaperon(link, old, new))
        link.on_health(lambda: self._attempts.wake_on(link))

    def _on_chaperon(self, link: Link, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None and link.target.sent(old):
                uid, now = objects.labels(old).get(keys.PARENT_UID, ""), self._clock.monotonic()
                self._cache.quotas.leave(uid, objects.namespace(old), link.node_name, now)
                self._on_candidate_gone(link, old)

            return

        uid = objects.labels(new).get(keys.PARENT_UID, "")
        if not self._is_candidate(link, new):
            return  # sent by another Target of the same cluster, or planted

        state = candidates.read(new, 0.0).state
        if state is not CandidateState.WAITING:
            self._candidate_phase.on_answer(link, old, new)

        if candidates.has_node(new):
            self._assumptions.observe(uid, link.node_name)

        if candidates.is_answered(new):
            self._on_answer(link, new, uid)

        if state in (CandidateState.RESERVED, CandidateState.COMMITTED):
            self._queue.activate(uid)
        elif state is CandidateState.LOST:
            self._queue.requeue(uid)
        elif preemption.has_new_offer(old, new):
            self._on_offer(uid)

        self._attempts.wake(uid)

    def _on_answer(self, link: Link, candidate: Object, uid: str) -> None:
        """Have quotas count what the target says of a pod, and of others like it."""
        quotas, node, pod = self._cache.quotas, link.node_name, self._pod_of(candidate)
        refusal, news = candidates.quota_refusal(candidate), False
        if pod is not None and (refusal or candidates.is_accepted(candidate)):
            news = quotas.answer(pod, node, refusal or None)

        taken = None if refusal else self._clock.monotonic()
        if quotas.settle(uid, node, taken) or news:
            self._queue.move(ClusterEvent(EventKind.TARGET_QUOTA, node))

    def _on_offer(self, uid: str) -> None:
        """Try a pod again for which a target could preempt by now; an attempt looks by itself."""
        if attempt := self._attempts.get(uid):
            attempt.offers += 1
        else:
            self._queue.requeue(uid)

    def _on_candidate_gone(self, link: Link, gone: Object) -> None:
        uid = objects.labels(gone).get(keys.PARENT_UID, "")
        self._candidate_phase.on_gone(gone, link, self._pod_of(gone))
        if self._candidate_phase.has_deleted(gone, link):
            self._attempts.wake(uid)
            return

        if not self._is_candidate(link, gone):
            return

        if attempt := self._attempts.get(uid):
            attempt.lost(link.node_name)

        if self._preemption.is_renewed(uid, link.node_name):
            self._queue.activate(uid)
        else:
            self._queue.requeue(uid)

    def _pod_of(self, candidate: Object) -> Object | None:
        return self._proxies.store.get(parent_key(candidate))

    def _is_candidate(self, link: Link, chaperon: Object) -> bool:
        """Return whether a chaperon is, or was, that of a pod which is there."""
        key = parent_key(chaperon)
        pod = self._proxies.store.get(key)
        return pod is not None and link.is_candidate(chaperon, key, objects.uid(pod))
