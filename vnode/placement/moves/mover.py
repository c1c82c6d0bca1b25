"""Takes the steps by which pods of a workload are moved: asks what is next, and evicts.

The filters of the scheduler say where there is room, by a pod of the workload that is fetched for
it. Evictions go through the Eviction API of the source, so that its disruption budgets are kept,
and at a bounded rate for all workloads together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Protocol

from vnode.api import kinds, objects, resources
from vnode.api.clock import TICK, Clock
from vnode.api.errors import Conflict, NotFound, TooManyRequests
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.kube import eviction
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.placement.moves import situation, telling
from vnode.placement.moves.demands import Demands, PlannedWorkload
from vnode.placement.moves.under_way import Move
from vnode.placement.moves.workload_moves import PATIENT, MovableWorkload, WorkloadMoves
from vnode.scheduling.cache import Cache
from vnode.scheduling.placement.moves import FailbackMode, Openings
from vnode.scheduling.placement.moving import Decision, Motive, Situation, Step, decide
from vnode.scheduling.placement.openings import ProbedOpenings
from vnode.scheduling.placement.policy import Policy, WatchedPolicies
from vnode.scheduling.snapshot import Snapshot

RATE: Final = 1.0  # evictions a second of all workloads together, over time
BURST: Final = 10  # evictions at once
SETTLED: Final = 1.0  # seconds in which changes of a workload are awaited
_REFUSED: Final = 10.0  # seconds after which an eviction is tried again that a budget forbade
_PLUGIN: Final = "PlacementPolicy"

Takers = Callable[[Object, Snapshot, str], tuple[frozenset[str], frozenset[str]]]
"""`Framework.takers`."""

log = logging.getLogger(__name__)


class MovingPolicies(WatchedPolicies, Protocol):
    """The policies that are in force, and their objects."""

    def in_force(self) -> Mapping[str, Policy]:
        """Return them by the keys of their objects."""

    def get(self, key: str) -> Object | None:
        """Return the object of that key."""


class Mover:
    """Moves pods of one workload at a time, which the caller chooses.

    `placeholders` answers for `failback` of mode Placeholder where pods have left some; else that
    is as mode Probe.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        takers: Takers,
        policies: MovingPolicies,
        demands: Demands,
        *,
        events: EventRecorder,
        clock: Clock,
        placeholders: Openings | None = None,
    ) -> None:
        self._client = client
        self._cache = cache
        self._takers = takers
        self._policies = policies
        self._demands = demands
        self._events = events
        self._clock = clock
        self._probed = ProbedOpenings()
        self._placeholders = placeholders
        self._evictions = TokenBucket(RATE, BURST)

    def forget(self, workload: str) -> None:
        """Forget a workload that has nothing to move any more."""
        self._probed.observe(workload, (), 0.0)

    async def pursue(
        self, key: PlannedWorkload, moves: WorkloadMoves, view: MovableWorkload, motive: Motive
    ) -> tuple[bool, float | None, Decision]:
        """Take one step for a motive; return whether one was due, and when to look again."""
        template = await self._template(moves, view)
        if template is None:
            return True, SETTLED, Decision()

        now = self._clock.monotonic()
        snapshot = self._cache.snapshot(now)
        able, free = self._takers(template, snapshot, _PLUGIN)
        clusters = situation.clusters_of(view.policy, view.workload, snapshot, able)
        if clusters is None:
            return False, None, Decision()

        moves.clusters = clusters.included
        accepting = free & clusters.included - moves.under_way.barred(now)
        requests = resources.pod_requests(template)
        room = situation.room(view.workload, snapshot, accepting, requests)
        self._probed.observe(key.workload, room, now)
        in_vain = self._in_vain(view, now)
        wait = None
        if motive is Motive.FAILBACK:
            room, wait = self._stable(view, room, now)
        else:
            room = {node: count for node, count in room.items() if node not in in_vain}

        replicas = view.replicas(motive, moves)
        limit = self._demands.limit(key, motive, view.policy)
        decision = decide(
            Situation(
                replicas=replicas,
                seats=view.workload.seats(clusters.shares),
                included=clusters.included,
                room=room,
                limit=limit.of(len(replicas) + len(moves.under_way)),
                under_way=len(moves.under_way),
                missing=moves.under_way.missing(),
                caps=clusters.caps,
            ),
            motive,
        )
        if decision.steps:
            delay = await self._take(key, decision.steps[0], moves, view, motive, snapshot)
            return True, delay, decision

        decision = replace(decision, why=telling.blocked(decision, snapshot))
        # Ages and back-offs pass without an event.
        return False, min(wait or PATIENT, PATIENT) if decision.left else None, decision

    def _in_vain(self, view: MovableWorkload, now: float) -> set[str]:
        """Return the nodes where pods have waited in vain lately, though there seemed to be room.

        For failback the time begins anew at such a moment.
        """
        wall, found = self._clock.now().timestamp(), set()
        for node, moment in view.workload.saturated.items():
            age = wall - moment
            is_open = self._probed.begin_at(view.workload.key, node, now - age)
            if is_open and age < view.policy.overflow.after:
                found.add(node)

        return found

    def _stable(
        self, view: MovableWorkload, room: dict[str, int], now: float
    ) -> tuple[dict[str, int], float | None]:
        """Return the room that there has been for long enough, and how long to wait for more.

        Where pods have left no placeholders, nor could they be asked, it is as for Probe.
        """
        workload, failback = view.workload, view.policy.failback
        stable, waits = {}, []
        for node, count in room.items():
            openings: Openings = self._probed
            is_placeholder = failback.mode is FailbackMode.PLACEHOLDER
            if is_placeholder and self._placeholders is not None and workload.placeholders[node]:
                openings = self._placeholders

            since = openings.since(workload.key, node)
            left = None if since is None else since + failback.stabilization - now
            if left is not None and left >= TICK:
                waits.append(left)
            elif left is not None:
                stable[node] = count

        return stable, min(waits, default=None)

    async def _template(self, moves: WorkloadMoves, view: MovableWorkload) -> Object | None:
        """Return a pod of the workload as it is stored, of the owner that makes the next one."""
        newest = view.newest()
        if newest is None:
            return None

        owner = objects.controller_uid(newest)
        if moves.template is None or objects.controller_uid(moves.template) != owner:
            try:
                moves.template = await self._client.get(
                    kinds.PODS, objects.name(newest), objects.namespace(newest)
                )
            except NotFound:
                return None

        return moves.template

    async def _take(
        self,
        key: PlannedWorkload,
        step: Step,
        moves: WorkloadMoves,
        view: MovableWorkload,
        motive: Motive,
        snapshot: Snapshot,
    ) -> float:
        """Evict the pod, if it is its turn; return when to go on."""
        now = self._clock.monotonic()
        if wait := self._evictions.wait(now):
            return wait

        self._evictions.take(now)
        pod = view.workload.members[step.uid].pod
        policy = self._policies.get(view.policy_key)
        known = frozenset(view.workload.members)
        view.workload.directed[step.target] += 1
        try:
            await eviction.evict(self._client, pod)
        except (NotFound, Conflict):
            view.undirect(step.target)
            return SETTLED
        except TooManyRequests as error:
            view.undirect(step.target)
            moves.refused = error.message
            self._demands.report(key, motive, moves, Decision(left=1))
            telling.refused(self._events, policy, pod, error.message)
            return max(_REFUSED, error.retry_after)
        except BaseException:
            view.undirect(step.target)
            raise

        moves.refused = ""
        why = telling.reason(view.policy, motive, step, snapshot)
        log.info("%s: %s", objects.key(pod), why)
        moves.under_way.begin(Move(step.uid, objects.key(pod), step.target, known))
        self._demands.moved(key, motive, moves)
        telling.moved(self._events, policy, pod, why)
        return 0.0
