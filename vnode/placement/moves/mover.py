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
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict, NotFound
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.kube import eviction
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.placement.moves import situation, telling
from vnode.placement.moves.demands import MoveDemands, PlannedWorkload
from vnode.placement.moves.rooms import ClusterLook, OtherMoves, Rooms
from vnode.placement.moves.under_way import Move
from vnode.placement.moves.workload_moves import PATIENT, MovableWorkload, WorkloadMoves
from vnode.scheduling.cache import Cache
from vnode.scheduling.placement.moves import Openings
from vnode.scheduling.placement.moving import Decision, Motive, Situation, Step, decide
from vnode.scheduling.placement.policy import Policy, WatchedPolicies
from vnode.scheduling.snapshot import Snapshot

RATE: Final = 1.0  # evictions a second of all workloads together, over time
BURST: Final = 10  # evictions at once
SETTLED: Final = 1.0  # seconds in which changes of a workload are awaited
_REFUSED: Final = 10.0  # seconds after which an eviction that was refused is tried again
# Failback waits for days, and a Rebalance says itself why it waits.
_TOLD: Final = frozenset({Motive.DRAIN, Motive.RESCHEDULE})
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
        demands: MoveDemands,
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
        self._rooms = Rooms(clock, placeholders)
        self._evictions = TokenBucket(RATE, BURST)
        self._deferred: set[PlannedWorkload] = set()  # for which there was no token

    def forget(self, key: PlannedWorkload) -> None:
        """Forget a workload that has nothing to move any more."""
        self._rooms.forget(key.workload)
        self._deferred.discard(key)

    async def pursue(
        self,
        key: PlannedWorkload,
        moves: WorkloadMoves,
        view: MovableWorkload,
        motive: Motive,
        others: OtherMoves,
    ) -> tuple[bool, float | None, Decision]:
        """Take one step for a motive; return whether one was due, and when to look again."""
        if turn := self._turn(key):
            return True, turn, Decision()

        template = await self._template(moves, view)
        if template is None:
            return True, SETTLED, Decision()

        look = self._look(template, view, moves, others)
        if look is None:
            return False, None, Decision()

        moves.clusters = look.clusters.included
        room, wait = self._rooms.room(look, motive)
        replicas = view.replicas(motive, moves)
        limit = self._demands.limit(key, motive, view.policy)
        decision = decide(
            Situation(
                replicas=replicas,
                seats=view.workload.seats(look.clusters.shares),
                included=look.clusters.included,
                room=room,
                limit=limit.of(len(replicas) + len(moves.under_way)),
                under_way=len(moves.under_way),
                missing=moves.under_way.missing(),
                caps=look.clusters.caps,
            ),
            motive,
        )
        if decision.steps:
            delay = await self._take(key, decision.steps[0], look, motive)
            return True, delay, decision

        decision = replace(decision, why=telling.blocked(decision, look.snapshot))
        if decision.is_stuck and motive in _TOLD and moves.stuck != decision.why:
            moves.stuck = decision.why
            policy = self._policies.get(view.policy_key)
            telling.blocked_on(self._events, policy, key.workload, motive, decision)

        # Ages and back-offs pass without an event.
        return False, min(wait or PATIENT, PATIENT) if decision.left else None, decision

    def _turn(self, key: PlannedWorkload) -> float:
        """Return in how many seconds it may be the workload's turn; 0 if it is."""
        wait = self._evictions.wait(self._clock.monotonic())
        if not wait:
            self._deferred.discard(key)
            return 0.0

        self._deferred.add(key)
        return wait + (len(self._deferred) - 1) / RATE

    def _look(
        self,
        template: Object,
        view: MovableWorkload,
        moves: WorkloadMoves,
        others: OtherMoves,
    ) -> ClusterLook | None:
        """Look at the clusters; None if it is not known what they weigh."""
        now = self._clock.monotonic()
        snapshot = self._cache.snapshot(now)
        able, free = self._takers(template, snapshot, _PLUGIN)
        clusters = situation.clusters_of(view.policy, view.workload, snapshot, able)
        if clusters is None:
            return None

        usable = clusters.included - moves.under_way.barred(now)
        requests = resources.pod_requests(template)
        takers = able & usable, free & usable
        return ClusterLook(view, moves, snapshot, clusters, *takers, requests, others, now)

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
        self, key: PlannedWorkload, step: Step, look: ClusterLook, motive: Motive
    ) -> float:
        """Evict the pod, if it is its turn; return when to go on."""
        view, moves = look.view, look.moves
        now = self._clock.monotonic()
        if wait := self._evictions.wait(now):
            return wait

        self._evictions.take(now)
        pod = view.workload.members[step.uid].pod
        policy = self._policies.get(view.policy_key)
        known = frozenset(view.workload.members)
        view.workload.directed[step.target] += 1
        move = Move(step.uid, objects.key(pod), step.target, known)
        moves.under_way.begin(move)  # other workloads look while the eviction is on its way
        try:
            await eviction.evict(self._client, pod)
        except (NotFound, Conflict):
            moves.withdraw(view, move)
            return SETTLED
        except ApiError as error:  # a budget, most often; what else there is users can mend as well
            moves.withdraw(view, move)
            moves.refused = error.message
            self._demands.report(key, motive, moves, Decision(left=1))
            telling.refused(self._events, policy, pod, error.message)
            return max(_REFUSED, getattr(error, "retry_after", 0.0))
        except BaseException:
            moves.withdraw(view, move)
            raise

        moves.refused = moves.stuck = ""
        why = telling.reason(view.policy, motive, step, look.snapshot)
        log.info("%s: %s", objects.key(pod), why)
        self._demands.moved(key, motive, moves)
        telling.moved(self._events, policy, pod, why)
        return 0.0
