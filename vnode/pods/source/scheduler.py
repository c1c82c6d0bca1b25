"""Schedules proxies: pending proxy pods -> queue -> scheduling cycle -> candidate phase.

Cycles run one after the other, in memory, over a snapshot of the virtual nodes; each pod that some
target could take then goes on in a task of its own (`candidate_phase`), hundreds at once. Informers
drive it: proxies feed the queue, nodes and summaries feed the cache, chaperons wake the tasks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.kube import urgency
from vnode.kube.informer import Informer
from vnode.planning.policy import NO_POLICIES, Policies
from vnode.pods import chaperons
from vnode.pods.source import event_handlers
from vnode.pods.source.attempt import Attempt, AttemptEnded, Outcome
from vnode.pods.source.attempts import Attempts
from vnode.pods.source.binding import Binder, PodChanged
from vnode.pods.source.candidate_events import CandidateEvents
from vnode.pods.source.candidate_phase import CandidatePhase
from vnode.pods.source.candidates import Bind
from vnode.pods.source.failure_handler import FailureHandler
from vnode.pods.source.gang_rounds import GangRounds, StrayCandidate
from vnode.pods.source.preemption_chooser import PreemptionChooser
from vnode.pods.source.rotation import Rotation
from vnode.pods.source.uncounted_pods import UncountedPods
from vnode.pods.source.unschedulable_reporter import UnschedulableReporter
from vnode.runtime.keyed_tasks import KeyedTasks
from vnode.runtime.links import Links
from vnode.runtime.supervisor import supervise
from vnode.scheduling.assumptions import Assumptions
from vnode.scheduling.cache import Cache
from vnode.scheduling.cycle import CycleState
from vnode.scheduling.events import ClusterEvent, EventKind
from vnode.scheduling.framework import Framework
from vnode.scheduling.queue import SchedulingQueue
from vnode.scheduling.queued_pod import QueuedPod, concerns_scheduling
from vnode.scheduling.result import CycleResult
from vnode.scheduling.status import Code
from vnode.telemetry import audit, metrics

OnCycle: TypeAlias = Callable[[Object, CycleResult, float], None]
"""Is told of a scheduling cycle: the pod, what was found, and the seconds that it took."""

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
        policies: Policies = NO_POLICIES,
        on_cycle: OnCycle | None = None,
    ) -> None:
        self._uncounted = UncountedPods(policies, cache.workloads, queue, clock)
        self._gangs = gangs
        self._on_cycle = on_cycle
        self._proxies = proxies
        self._links = links
        self._framework = framework
        self._queue = queue
        self._cache = cache
        self._clock = clock
        self._attempts = Attempts(proxies, assumptions)
        self._rotation = Rotation(links)
        self._assumptions = assumptions
        self._candidate_phase = candidate_phase
        self._binder = binder
        self._preemption = preemption
        self._failures = FailureHandler(
            links,
            framework=framework,
            queue=queue,
            rotation=self._rotation,
            preemption=preemption,
            reporter=reporter,
            gangs=gangs,
            clock=clock,
        )
        self._candidate_events = CandidateEvents(
            proxies,
            links,
            attempts=self._attempts,
            queue=queue,
            cache=cache,
            assumptions=assumptions,
            candidate_phase=candidate_phase,
            preemption=preemption,
            clock=clock,
        )

    async def run(self) -> None:
        """Schedule until cancelled, once the list of proxy pods is complete."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_proxy)
        self._candidate_events.open()
        async with supervise() as tasks, asyncio.TaskGroup() as group:
            tasks.start(self._assumptions.run(), "promises")
            tasks.start(self._uncounted.run(), "counts of workloads")
            withdrawals: KeyedTasks[str] = tasks.keyed()

            def withdraw(stray: StrayCandidate) -> None:
                name = f"withdraw {stray.key}"
                withdrawals.start(stray.key, lambda: self._withdraw(stray), name)

            self._gangs.follow(self._attempts.wake, withdraw)
            while True:
                await self._assumptions.whole()
                queued = await self._queue.pop()
                took = 0.0 if self._uncounted.hold(queued) else self._cycle(queued, group)
                # What costs much leaves as much time to all else that the agent does.
                await (self._clock.sleep(took) if took > _COSTLY else asyncio.sleep(0))

    def count_pending(self) -> Iterator[None]:
        """Set the gauges of pending pods, in one step: of 10,000 it takes a millisecond."""
        for place, count in self._queue.statistics().items():
            metrics.PENDING_PODS.labels(place).set(count)

        yield

    def _on_proxy(self, old: Object | None, new: Object | None) -> None:
        pod = objects.latest(old, new)
        uid = objects.uid(pod)
        if new is None or objects.is_terminating(new) or objects.node_name(new):
            self._queue.delete(uid)
            self._preemption.forget(uid)
            self._attempts.wake(uid)
        else:
            self._queue.add(new)
            if old is not None and concerns_scheduling(old, new):
                self._attempts.wake(uid)  # its candidates are to be as it is now

        if new is None:
            self._attempts.forget_promises(uid)
            freed = self._cache.remove_pod(uid)
        else:
            freed = self._cache.set_pod(new)

        if freed:
            event = ClusterEvent(EventKind.PLAN_FREED, namespace=objects.namespace(pod))
            self._queue.move(event, by=uid)

        if moved := event_handlers.proxy_event(old, new):
            self._queue.move(moved)

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

        if result.is_undecided:
            self._queue.soon(queued.uid)
            self._queue.retry(queued.uid)
            return took

        attempt = self._make_attempt(queued, result, now, in_gang=gang is not None)
        self._attempts.begin(attempt)
        with audit.on_behalf_of(audit.of(kinds.PODS, pod)):
            group.create_task(self._attempt(queued, attempt, result), name=f"place {attempt.key}")

        return took

    def _make_attempt(
        self, queued: QueuedPod, result: CycleResult, now: float, *, in_gang: bool
    ) -> Attempt:
        """Return the attempt at what a cycle has found; one that reserves nothing has a winner."""
        pod = queued.pod
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
            in_gang=in_gang,
        )
        if result.feasible and chaperons.skips_reservation(pod):
            attempt.winner = attempt.ranked[0]
            self._assumptions.assume(pod, attempt.winner, attempt.generation)

        return attempt

    def _answers(self, node: str) -> bool:
        link = self._links.get(node)
        return link is not None and link.health.healthy

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
            if outcome is Outcome.UNSCHEDULABLE:
                await self._failures.handle(queued, attempt, decided.reasons, result)
            else:
                self._queue.done(queued.uid)
        except PodChanged as error:
            log.info("%s is tried again: %s", attempt.key, error)
            await self._candidate_phase.renew(attempt)
            queued.remade = attempt.remade
            self._queue.retry(queued.uid)
        except VnodeError as error:
            log.warning("placing %s failed, trying again: %s", attempt.key, error)
            await self._failures.handle_error(queued, attempt, error, result)
        except Exception:
            log.exception("placing %s failed, trying again", attempt.key)
            self._queue.retry(queued.uid)
        finally:
            self._attempts.end(attempt, attempt.winner if outcome is Outcome.BOUND else "")

    async def _bind(self, queued: QueuedPod, attempt: Attempt, state: CycleState) -> bool:
        """Bind the pod to the winner, if its candidate there is what the pod is at that moment."""

        def is_current(pod: Object) -> bool:
            return self._candidate_phase.may_win(attempt, pod, attempt.winner)

        with urgency.awaited():  # by the target's scheduler, which holds the place until then
            return await self._binder.bind(queued, attempt.winner, state, is_current)
