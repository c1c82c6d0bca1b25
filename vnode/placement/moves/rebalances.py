"""Carries out Rebalances: asks the mover for their workloads, and says how far it is.

A few of a namespace run at once, and the others wait (`rebalance_turns`). A Rebalance is for the
workloads that there are when it begins. It is complete when each of them has
been at its plan once, and has failed when nothing has moved for a long time, or what it names is
not there. Then it is deleted after the time that it names. A new leader begins again with those
that have not ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import ConfigError, NotFound
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.kube.client import Client
from vnode.kube.events import NORMAL, WARNING, EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.moves import rebalance_status
from vnode.placement.moves.controller import Moves
from vnode.placement.moves.demands import WorkloadRebalance
from vnode.placement.moves.rebalance_progress import RebalanceProgress
from vnode.placement.moves.rebalance_status import (
    RebalanceOutcome,
    RebalancePhase,
    RebalanceSpec,
    RebalanceSums,
)
from vnode.placement.moves.rebalance_turns import RebalanceTurns
from vnode.planning.workload_key import PlannedWorkload
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.runtime.write_limits import WriteLimiter
from vnode.telemetry import audit

PROGRESS_DEADLINE: Final = 600.0
"""Seconds without a move after which a Rebalance has failed."""
_AWAITED: Final = 5.0
"""Seconds in which what a Rebalance names may be created after it, as from the same file."""
_SETTLED: Final = 1.0  # seconds in which progress is awaited, to be written together

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _RunningRebalance:
    """A Rebalance that has begun."""

    uid: str
    before: int
    """Pods that a former leader has moved."""
    changed_at: float
    progress: RebalanceProgress = field(default_factory=RebalanceProgress)
    problems: list[str] = field(default_factory=list)
    """What is wrong with what it names."""


class Rebalances:
    """Runs in the leader."""

    def __init__(
        self, client: Client, moves: Moves, *, events: EventRecorder, clock: Clock
    ) -> None:
        self._client = client
        self._moves = moves
        self._events = events
        self._clock = clock
        self._informer = Informer(client, kinds.REBALANCES)
        self._running: dict[str, _RunningRebalance] = {}
        self._turns = RebalanceTurns()
        self._controller: Controller[str] = Controller(
            "rebalances",
            self._reconcile,
            subject=audit.finder(kinds.REBALANCES, self._informer.store.get),
            workers=2,
            namespace=objects.key_namespace,
        )
        self._limiter: WriteLimiter[str] = WriteLimiter(  # by namespace
            "rebalances", write_limits.REBALANCES, clock
        )
        self._expectations = Expectations(self._controller.add)

    async def run(self) -> None:
        """Carry them out until cancelled. A cluster without the CRD has none."""
        self._informer.subscribe_by_key(self._controller.add)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run(), name="watch-rebalances")
            group.create_task(self._controller.run(), name="carry-out-rebalances")

    async def _reconcile(self, key: str) -> float | None:
        obj = self._informer.store.get(key)
        running = self._running.get(key)
        if obj is None or (running is not None and running.uid != objects.uid(obj)):
            self._stop(key)

        if obj is None or objects.is_terminating(obj):
            self._stop(key)
            self._expectations.forget(key)
            return None

        if self._expectations.pending(key, obj):
            return None

        try:
            spec = rebalance_status.decode(obj)
        except ConfigError as error:
            if not objects.status(obj).get("completionTime"):
                outcome = RebalanceOutcome(RebalancePhase.FAILED, "Invalid", str(error))
                await self._write(key, obj, RebalanceSums(), outcome, 0)

            return None

        if ended := objects.status(obj).get("completionTime"):
            self._stop(key)
            return await self._expire(obj, spec, str(ended))

        return await self._carry_out(key, obj, spec)

    async def _carry_out(self, key: str, obj: Object, spec: RebalanceSpec) -> float | None:
        """Begin with a Rebalance if it is its turn, and say how far it is; return when again."""
        running, uid = self._running.get(key), objects.uid(obj)
        if running is None:
            is_known = self._turns.waits(key, uid)
            if not is_known and (wait := self._limiter.take(objects.namespace(obj))):
                return wait

            if not self._turns.begin(key, uid):
                await self._write(key, obj, RebalanceSums(), rebalance_status.WAITS, 0)
                return None  # it is woken when it is its turn

            self._wake_next(key)
            running = await self._start(key, obj, spec)

        sums = await running.progress.sums(self._clock)
        if running.problems:
            left = self._awaited(obj)
            self._stop(key)
            outcome = rebalance_status.unplanned(running.problems, may_come=left > 0)
            await self._write(key, obj, sums, outcome, running.before)
            return min(left, _SETTLED) if left > 0 else None

        outcome = rebalance_status.judge(sums, is_stuck=self._is_stuck(running, sums))
        await self._write(key, obj, sums, outcome, running.before)
        left = running.changed_at + PROGRESS_DEADLINE - self._clock.monotonic()
        return None if outcome.phase.is_end else max(left, _SETTLED)

    async def _start(self, key: str, obj: Object, spec: RebalanceSpec) -> _RunningRebalance:
        """Ask the mover for the workloads that there are."""
        namespace = objects.namespace(obj)

        def changed() -> None:
            self._controller.add_after(key, _SETTLED)

        before, now = int(objects.status(obj).get("moved") or 0), self._clock.monotonic()
        running = _RunningRebalance(objects.uid(obj), before, now)
        asked_by, progress = audit.of(kinds.REBALANCES, obj), running.progress
        planned = (await self._moves.planned.of(namespace)).items()
        async for workload, policy in in_slices(planned, self._clock):
            if spec.concerns(workload.workload, policy):
                demand = WorkloadRebalance(limit=spec.limit, changed=changed, asked_by=asked_by)
                progress.ask(workload, demand)

        self._running[key] = running
        running.problems = await self._problems(namespace, spec, progress.unmet)
        if not running.problems:
            await self._moves.ask(namespace, progress.unmet)

        return running

    async def _problems(
        self, namespace: str, spec: RebalanceSpec, planned: Collection[PlannedWorkload]
    ) -> list[str]:
        """Return what is wrong with what a Rebalance names."""
        missing = sorted(spec.workloads - {each.workload for each in planned})
        if not missing and (planned or not spec.policy):
            return []

        return await self._moves.planned.problems(namespace, spec.policy, missing)

    def _awaited(self, obj: Object) -> float:
        """Return for how many seconds what a Rebalance names may still come; 0 if no more."""
        created = objects.created_at(obj)
        age = (self._clock.now() - created).total_seconds() if created else _AWAITED
        return max(0.0, _AWAITED - age) if age < _AWAITED - TICK else 0.0

    def _stop(self, key: str) -> None:
        """End what runs or waits; the next one of the namespace may begin."""
        if (running := self._running.pop(key, None)) is not None:
            self._moves.drop(running.progress.unmet)

        self._turns.leave(key)
        self._wake_next(key)

    def _wake_next(self, key: str) -> None:
        """Look at the next one that may begin in the namespace of a key."""
        if (following := self._turns.next(objects.key_namespace(key))) is not None:
            self._controller.add(following)

    def _is_stuck(self, running: _RunningRebalance, sums: RebalanceSums) -> bool:
        """Tell whether nothing has moved for too long."""
        now = self._clock.monotonic()
        if sums.is_news:
            running.changed_at = now

        return now - running.changed_at >= PROGRESS_DEADLINE - TICK

    async def _write(
        self,
        key: str,
        obj: Object,
        sums: RebalanceSums,
        outcome: RebalanceOutcome,
        before: int,
    ) -> None:
        wanted = rebalance_status.status(obj, sums, outcome, before, self._clock.now())
        present = objects.status(obj)
        news = {field: value for field, value in wanted.items() if present.get(field) != value}
        if not news:
            return

        body = objects.status_patch(obj, news)
        after = await self._expectations.patch(
            self._client, kinds.REBALANCES, obj, body, key=key, subresource="status"
        )
        if after is not None and outcome.phase.is_end:
            type_ = NORMAL if outcome.phase is RebalancePhase.COMPLETE else WARNING
            kind = kinds.REBALANCES
            about = objects.reference(obj, kind.kind, kind.api_version)
            self._events.event(about, type_, outcome.phase.value, outcome.message)
            log.info("rebalance/%s: %s: %s", key, outcome.phase.value, outcome.message)

    async def _expire(self, obj: Object, spec: RebalanceSpec, ended: str) -> float | None:
        """Delete a Rebalance that has ended, if it is time; return when it is."""
        moment = objects.parse_timestamp(ended)
        if spec.ttl is None or moment is None:
            return None

        left = moment.timestamp() + spec.ttl - self._clock.now().timestamp()
        if left >= TICK:
            return left

        name, namespace = objects.name(obj), objects.namespace(obj)
        try:
            await self._client.delete(kinds.REBALANCES, name, namespace, uid=objects.uid(obj))
        except NotFound:
            log.debug("rebalance/%s is gone", objects.key(obj))

        return None
