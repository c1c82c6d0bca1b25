"""Schedules proxies: pending proxy pods -> queue -> scheduling cycle -> candidate phase.

Cycles run one after the other, in memory, over a snapshot of the virtual nodes; each pod that some
target could take then goes on in a task of its own (`candidate_phase`), hundreds at once. Informers
drive it: proxies feed the queue, nodes and summaries feed the cache, chaperons wake the tasks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from vnode.api import keys, kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict, VnodeError
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.kube import urgency
from vnode.kube.informer import Informer
from vnode.pods import chaperons, preemption
from vnode.pods.source import candidates, event_handlers, quota_events
from vnode.pods.source.attempt import Attempt, AttemptEnded, Outcome
from vnode.pods.source.binding import Binder, PodChanged
from vnode.pods.source.candidate_phase import CandidatePhase
from vnode.pods.source.candidates import Bind, CandidateState
from vnode.pods.source.gang_choice import ELSEWHERE
from vnode.pods.source.gang_rounds import GangRounds, StrayCandidate
from vnode.pods.source.preemption_chooser import PreemptionChooser
from vnode.pods.source.rotation import Rotation
from vnode.pods.source.unschedulable_reporter import UnschedulableReporter
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.links import CONNECTING, Link, Links
from vnode.runtime.supervisor import supervise
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEvent, ClusterEventWithHint, EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod, concerns_scheduling
from vnode.scheduling.result import CycleResult
from vnode.scheduling.status import Code
from vnode.telemetry import audit, metrics

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

OnCycle: TypeAlias = Callable[[Object, CycleResult, float], None]
"""Is told of a scheduling cycle: the pod, what was found, and the seconds that it took."""

_TOLD: Final = 10.0
"""Seconds in which users are not told again of a pod that waits for targets that connect."""

_COSTLY: Final = 0.005  # seconds; most cycles take a twentieth of it

log = logging.getLogger(__name__)


class ProxyScheduler:
    """Runs in the leader of every cluster that has targets."""

    def __init__(
        self,
        proxies: Informer,
        links: Links,
        *,
        framework: Framework,
        queue: SchedulingQueue,
        cache: Cache,
        assumptions: Assumptions,
        candidate_phase: CandidatePhase,
        binder: Binder,
        preemption: PreemptionChooser,
        reporter: UnschedulableReporter,
        gangs: GangRounds,
        clock: Clock,
        on_cycle: OnCycle | None = None,
    ) -> None:
        self._gangs = gangs
        self._on_cycle = on_cycle
        self._proxies = proxies
        self._links = links
        self._framework = framework
        self._queue = queue
        self._cache = cache
        self._clock = clock
        self._attempts: dict[str, Attempt] = {}  # by UID: the pods in their candidate phase
        self._rotation = Rotation(links)
        self._assumptions = assumptions
        self._candidate_phase = candidate_phase
        self._binder = binder
        self._preemption = preemption
        self._reporter = reporter

    async def run(self) -> None:
        """Schedule until cancelled, once the list of proxy pods is complete."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_proxy)
        self._links.subscribe(self._on_link, self._on_link_gone)
        async with supervise() as tasks, asyncio.TaskGroup() as group:
            tasks.start(self._assumptions.run(), "promises")
            withdrawals: KeyedTasks[str] = tasks.keyed()

            def withdraw(stray: StrayCandidate) -> None:
                name = f"withdraw {stray.key}"
                withdrawals.start(stray.key, lambda: self._withdraw(stray), name)

            self._gangs.follow(self._wake, withdraw)
            while True:
                queued = await self._queue.pop()
                took = self._cycle(queued, group)
                # What costs much leaves as much time to all else that the agent does.
                await (self._clock.sleep(took) if took > _COSTLY else asyncio.sleep(0))

    def count_pending(self) -> None:
        """Set the gauges of pending pods."""
        for place, count in self._queue.statistics().items():
            metrics.PENDING_PODS.labels(place).set(count)

    def _on_proxy(self, old: Object | None, new: Object | None) -> None:
        pod = objects.latest(old, new)
        uid = objects.uid(pod)
        if new is None or objects.is_terminating(new) or objects.node_name(new):
            self._queue.delete(uid)
            self._preemption.forget(uid)
            self._wake(uid)
        else:
            self._queue.add(new)
            if old is not None and concerns_scheduling(old, new):
                self._wake(uid)  # its candidates are to be as it is now

        if new is None:
            if attempt := self._attempts.get(uid):
                self._forget_all_but(attempt, "")  # whom it kept off is to hear of it

            freed = self._cache.remove_pod(uid)
        else:
            freed = self._cache.set_pod(new)

        if freed:
            event = ClusterEvent(EventKind.PLAN_FREED, namespace=objects.namespace(pod))
            self._queue.move(event, by=uid)

        if moved := event_handlers.proxy_event(old, new):
            self._queue.move(moved)

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(lambda old, new: self._on_chaperon(link, old, new))
        link.on_health(lambda: self._on_health(link))

    def _on_link_gone(self, link: Link) -> None:
        for attempt in self._attempts.values():
            attempt.changed.set()

    def _on_health(self, link: Link) -> None:
        for attempt in self._attempts.values():
            if link.node_name in attempt.created or link.node_name in attempt.ranked:
                attempt.changed.set()

    def _on_chaperon(self, link: Link, old: Object | None, new: Object | None) -> None:
        if new is None:
            if old is not None and link.target.sent(old):
                gone = objects.labels(old).get(keys.PARENT_UID, "")
                self._cache.quotas.leave(gone, link.node_name, self._clock.monotonic())
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

        self._wake(uid)

    def _on_answer(self, link: Link, candidate: Object, uid: str) -> None:
        """Have quotas count what the target says of a pod, and of others like it."""
        quotas, node, pod = self._cache.quotas, link.node_name, self._pod_of(candidate)
        refusal, news = candidates.quota_refusal(candidate), False
        if pod is not None and (refusal or candidates.is_accepted(candidate)):
            news = quotas.answer(pod, node, refusal or None)

        taken = None if refusal else self._clock.monotonic()
        if quotas.settle(uid, node, taken) or news:
            self._queue.move(ClusterEvent(EventKind.TARGET_QUOTA, node))

    def _pod_of(self, candidate: Object) -> Object | None:
        return self._proxies.store.get(parent_key(candidate))

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
            self._wake(uid)
            return

        if not self._is_candidate(link, gone):
            return

        if attempt := self._attempts.get(uid):
            attempt.lost(link.node_name)

        if self._preemption.is_renewed(uid, link.node_name):
            self._queue.activate(uid)
        else:
            self._queue.requeue(uid)

    def _is_candidate(self, link: Link, chaperon: Object) -> bool:
        """Return whether a chaperon is, or was, that of a pod which is there."""
        key = parent_key(chaperon)
        pod = self._proxies.store.get(key)
        return pod is not None and link.is_candidate(chaperon, key, objects.uid(pod))

    def _wake(self, uid: str) -> bool:
        """Have the attempt at a pod decide again; return whether there is one."""
        attempt = self._attempts.get(uid)
        if attempt is None:
            return False

        attempt.changed.set()
        return True

    async def _withdraw(self, stray: StrayCandidate) -> None:
        """Delete the candidate of a pod whose gang has given the target up."""
        try:
            with audit.on_behalf_of(audit.finder(kinds.PODS, self._proxies.store.get)(stray.key)):
                await self._candidate_phase.withdraw(stray)
        except VnodeError as error:
            log.warning("the candidate of %s on %s stays: %s", stray.key, stray.node, error)
        except Exception:
            log.exception("the candidate of %s on %s stays", stray.key, stray.node)

    def _cycle(self, queued: QueuedPod, group: asyncio.TaskGroup) -> float:
        """Run one scheduling cycle; the pod goes on in a task if there is anything to wait for.

        Return the seconds that it took of the processor: on a busy machine it may last longer.
        """
        pod, now, begun = queued.pod, self._clock.monotonic(), time.thread_time()
        gang = self._gangs.of(queued.uid)
        with metrics.SCHEDULING_CYCLE_SECONDS.time():
            if gang is None:
                result = self._framework.schedule(pod, self._cache.snapshot(), queued.asked)
            else:
                result = self._gangs.cycle(gang, queued, self._cache.snapshot())

            result.state.outcome.record()

        took = self._clock.monotonic() - now
        if self._on_cycle is not None:
            self._on_cycle(pod, result, took)

        self._queue.pay(queued, took)
        took = min(took, time.thread_time() - begun)  # of a clock that stands still, nothing
        if result.status.code is Code.ERROR:
            log.error("scheduling %s failed: %s", objects.key(pod), result.status.message)
            metrics.SCHEDULING_ATTEMPTS.labels("error").inc()
            self._queue.retry(queued.uid)
            return took

        ranked = (*(s.name for s in result.feasible), *self._rotation.next(queued, result, now))
        preempts = self._preemption.chosen(queued.uid, result.excluded)
        attempt = Attempt(
            objects.key(pod),
            queued.uid,
            (preempts, *(n for n in ranked if n != preempts)) if preempts else ranked,
            now,
            preempts=preempts,
            rounds=self._preemption.rounds(queued.uid),
            feasible=frozenset(scored.name for scored in result.feasible),
            excluded=frozenset(node for node in result.excluded if self._answers(node)),
            asked=queued.asked,
            generation=self._cache.generation,
            kept=result.state.outcome.kept,
            in_gang=gang is not None,
        )
        if result.feasible and chaperons.skips_reservation(pod):
            attempt.winner = attempt.ranked[0]
            self._assumptions.assume(pod, attempt.winner, attempt.generation)

        self._attempts[queued.uid] = attempt
        with audit.on_behalf_of(audit.of(kinds.PODS, pod)):
            group.create_task(self._attempt(queued, attempt, result), name=f"place {attempt.key}")

        return took

    def _answers(self, node: str) -> bool:
        link = self._links.get(node)
        return link is not None and link.health.healthy

    def _is_connecting(self, result: CycleResult) -> bool:
        """Tell whether it is not known yet if a target answers that may have room."""
        links = (self._links.get(node) for node in result.statuses)
        return any(
            link is not None and not link.health.healthy and link.health.reason == CONNECTING
            for link in links
        )

    def _waits_for_answer(self, result: CycleResult) -> bool:
        """Tell whether nothing else keeps a pod off a target than that it still connects.

        Such an attempt says nothing of the pod, so that it is not to wait longer for the next one.
        """
        for node, status in result.statuses.items():
            link = self._links.get(node) if status.is_pending else None
            if link is not None and link.health.reason == CONNECTING:
                return True

        return False

    async def _attempt(self, queued: QueuedPod, attempt: Attempt, result: CycleResult) -> None:
        outcome = Outcome.UNSCHEDULABLE
        try:
            decided: Bind | AttemptEnded = Bind(attempt.winner)
            if not attempt.winner:
                decided = await self._candidate_phase.run(attempt)

            queued.remade = attempt.remade
            if isinstance(decided, Bind):
                attempt.winner = decided.node
                bound = await self._bind(queued, attempt, result.state)
                decided = AttemptEnded(Outcome.BOUND if bound else Outcome.UNSCHEDULABLE)

            outcome = decided.outcome
            await self._conclude(queued, attempt, decided, result)
        except PodChanged as error:
            log.info("%s is tried again: %s", attempt.key, error)
            await self._candidate_phase.renew(attempt)
            queued.remade = attempt.remade
            self._queue.retry(queued.uid)
        except VnodeError as error:
            log.warning("placing %s failed, trying again: %s", attempt.key, error)
            await self._tell(queued, attempt, result, error)
            self._queue.retry(queued.uid)
            self._gangs.failed(attempt, result, str(error))
        except Exception:
            log.exception("placing %s failed, trying again", attempt.key)
            self._queue.retry(queued.uid)
        finally:
            del self._attempts[queued.uid]
            self._forget_all_but(attempt, attempt.winner if outcome is Outcome.BOUND else "")

    async def _bind(self, queued: QueuedPod, attempt: Attempt, state: CycleState) -> bool:
        """Bind the pod to the winner, if its candidate there is what the pod is at that moment."""

        def is_current(pod: Object) -> bool:
            return self._candidate_phase.may_win(attempt, pod, attempt.winner)

        with urgency.awaited():  # by the target's scheduler, which holds the place until then
            return await self._binder.bind(queued, attempt.winner, state, is_current)

    async def _tell(
        self, queued: QueuedPod, attempt: Attempt, result: CycleResult, error: VnodeError
    ) -> None:
        """Report on the pod why its API server does not bind it; a Conflict says nothing."""
        if attempt.winner and isinstance(error, ApiError) and not isinstance(error, Conflict):
            why = f"this cluster does not bind the pod: {error.message}"
            with suppress(VnodeError):
                await self._reporter.report(queued.pod, result, {attempt.winner: why})

    def _forget_all_but(self, attempt: Attempt, winner: str) -> None:
        """Withdraw the assumptions of an attempt that is over, but not where the pod is bound."""
        bound = self._proxies.store.get(attempt.key)
        if bound is not None and objects.uid(bound) == attempt.uid:
            winner = winner or objects.node_name(bound)

        for node in {*attempt.created, attempt.winner} - {winner}:
            self._assumptions.forget(attempt.uid, node)

    async def _conclude(
        self, queued: QueuedPod, attempt: Attempt, ended: AttemptEnded, result: CycleResult
    ) -> None:
        reasons = ended.reasons
        if ended.outcome is not Outcome.UNSCHEDULABLE:
            self._queue.done(queued.uid)
            return

        metrics.SCHEDULING_ATTEMPTS.labels("unschedulable").inc()
        if attempt.in_gang:
            self._gangs.ended(attempt, result, reasons)

        if reasons or not result.feasible:
            await self._report(queued, attempt, reasons, result)

        offers = attempt.offers
        more = bool(reasons) and self._rotation.record(queued, attempt, result, reasons)
        again = more and self._framework.nominates
        if not again and reasons and not attempt.in_gang:
            if self._is_connecting(result):
                again = True
            elif not (result.state.outcome.opens_more or self._rotation.owes(queued, result)):
                again = await self._preemption.choose(queued.pod, attempt)

        if attempt.retryable or again or attempt.offers > offers:
            self._queue.retry(queued.uid)
            return

        rejections = result.rejections()
        for node in reasons:
            rejections[node] = frozenset({self._refuser(queued, attempt, node)})

        self._queue.reject(queued.uid, rejections, result.state.retry_at)

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

    def _refuser(self, queued: QueuedPod, attempt: Attempt, node: str) -> str:
        """Return the plugin that is against a node, or what stands for its target's answer."""
        if (refusal := attempt.refused.get(node)) is not None:
            return refusal.plugin

        is_refused = quota_events.is_refused(self._links, queued.pod, node)
        return REFUSED_CANDIDATES if is_refused else CANDIDATES
