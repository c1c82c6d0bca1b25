"""Takes the steps by which pods of a workload are moved: asks what is next, and evicts.

The filters of the scheduler say where there is room, by a pod of the workload that is fetched for
it. Evictions go through the Eviction API of the source, so that its disruption budgets are kept,
and at a bounded rate for all workloads together.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, Protocol

from vnode.api import kinds, objects, resources
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict, NotFound
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.eviction import evict
from vnode.placement.moves import move_events, workload_state
from vnode.placement.moves.demands import MoveDemands, PlannedWorkload
from vnode.placement.moves.room_tracker import MoveContext, OtherMoves, RoomTracker
from vnode.placement.moves.under_way import Move
from vnode.placement.moves.workload_moves import PATIENT, MovableWorkload, WorkloadMoves
from vnode.planning.failover import Replacements
from vnode.planning.move_policy import Openings
from vnode.planning.moving import (
    Decision,
    MoveReason,
    PlannedEviction,
    WorkloadState,
    decide,
)
from vnode.planning.moving_together import decide_together
from vnode.planning.policy import Policy, WatchedPolicies
from vnode.scheduling.cache import Cache
from vnode.scheduling.snapshot import Snapshot
from vnode.telemetry import metrics

RATE: Final = 1.0  # evictions a second of all workloads together, over time
BURST: Final = 10  # evictions at once
SETTLED: Final = 1.0  # seconds in which changes of a workload are awaited
_REFUSED: Final = 10.0  # seconds after which an eviction that was refused is tried again
# Failback waits for days, and a Rebalance says itself why it waits.
_TOLD: Final = frozenset({MoveReason.DRAIN, MoveReason.RESCHEDULE})

Takers = Callable[[Object, Snapshot], tuple[frozenset[str], frozenset[str]]]
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
        *,
        events: EventRecorder,
        clock: Clock,
        replacements: Replacements,
        placeholders: Openings | None = None,
        on_plan_freed: Callable[[], None],
    ) -> None:
        self.demands = MoveDemands()
        self._client = client
        self._cache = cache
        self._takers = takers
        self._policies = policies
        self._events = events
        self._clock = clock
        self._replacements = replacements
        self._on_plan_freed = on_plan_freed
        self._room_tracker = RoomTracker(clock, placeholders)
        self._evictions = TokenBucket(RATE, BURST)
        self._deferred: set[PlannedWorkload] = set()  # for which there was no token

    def forget(self, key: PlannedWorkload) -> None:
        """Forget a workload that has nothing to move any more."""
        self._room_tracker.forget(key.workload)
        self._deferred.discard(key)

    def tell_failed(self, view: MovableWorkload, node: str, until: datetime) -> None:
        """Tell on the policy that nothing is moved to a node until then."""
        target = move_events.shown(node, self._cache.snapshot())
        policy = self._policies.get(view.policy_key)
        move_events.failed(self._events, policy, view.workload.key, target, until)

    async def pursue(
        self,
        key: PlannedWorkload,
        moves: WorkloadMoves,
        view: MovableWorkload,
        reason: MoveReason,
        others: OtherMoves,
    ) -> tuple[bool, float | None, Decision]:
        """Take one step for a reason; return whether one was due, and when to look again."""
        if turn := self._turn(key):
            return True, turn, Decision()

        if self._is_connecting(view):
            return True, PATIENT, Decision()  # its health is an event

        template = await self._template(moves, view)
        if template is None:
            return True, SETTLED, Decision()

        context = self._look(template, view, moves, others)
        moves.clusters = context.clusters.included
        room, wait = self._room_tracker.room(context, reason)
        replicas = view.replicas(reason, moves)
        limit, missing = self.demands.limit(key, reason, view.policy), moves.under_way.missing()
        shares = context.clusters.shares
        if view.is_together:
            shares = tuple(share for share in shares if share.node in context.able)

        decider = decide_together if view.is_together else decide
        decision = decider(
            WorkloadState(
                replicas=replicas,
                seats=view.workload.seats(shares),
                included=context.clusters.included,
                room=room,
                limit=limit.of(len(replicas) + missing.total()),
                overflows=view.policy.overflow.max_candidates > 1,
                under_way=len(moves.under_way),
                missing=missing,
                caps=context.clusters.caps,
                destination=view.workload.destination,
            ),
            reason,
        )
        if moves.head_for(view, decision.destination, reason):
            self._on_plan_freed()

        if decision.evictions:
            delay = await self._take(key, decision.evictions[0], context, reason)
            return True, delay, decision

        decision = replace(decision, why=move_events.blocked(decision, context.snapshot))
        if decision.is_stuck and reason in _TOLD and moves.stuck != decision.why:
            moves.stuck = decision.why
            policy = self._policies.get(view.policy_key)
            move_events.blocked_on(self._events, policy, key.workload, reason, decision)

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

    def _is_connecting(self, view: MovableWorkload) -> bool:
        """Tell whether it is not known yet which of the policy's clusters answer."""
        nodes = self._cache.snapshot().nodes
        connecting = [node for node in nodes if node.virtual.connecting]
        return bool(connecting and view.policy.shares(connecting))

    def _look(
        self,
        template: Object,
        view: MovableWorkload,
        moves: WorkloadMoves,
        others: OtherMoves,
    ) -> MoveContext:
        """Look at the clusters."""
        now = self._clock.monotonic()
        snapshot = self._cache.snapshot()
        able, free = self._takers(template, snapshot)
        requests = resources.pod_requests(template)
        clusters = workload_state.clusters_of(view.policy, view.workload, snapshot, able, requests)
        if clusters.weighting is not None:
            view.workload.weigh(clusters.weighting)

        fits = {node.name: workload_state.fits(node, requests) for node in snapshot.nodes}
        for node in moves.under_way.in_backoff(now) & free:
            moves.under_way.reopen(node, fits[node], now)

        usable = clusters.included - moves.under_way.in_backoff(now)
        takers = able & usable, free & usable
        return MoveContext(view, moves, snapshot, clusters, *takers, fits, requests, others, now)

    async def _template(self, moves: WorkloadMoves, view: MovableWorkload) -> Object | None:
        """Return a pod as the owner makes the next one: one of the workload, as it is stored."""
        newest = view.newest()
        if newest is None:
            return None

        owner = objects.controller_uid(newest)
        if moves.template is None or objects.controller_uid(moves.template) != owner:
            try:
                found = await self._client.get(
                    kinds.PODS, objects.name(newest), objects.namespace(newest)
                )
            except NotFound:
                return None

            moves.template = workload_state.template_of(found)

        return moves.template

    async def _take(
        self,
        key: PlannedWorkload,
        eviction: PlannedEviction,
        context: MoveContext,
        reason: MoveReason,
    ) -> float:
        """Evict the pod, if it is its turn; return when to go on."""
        view, moves = context.view, context.moves
        now = self._clock.monotonic()
        if wait := self._evictions.wait(now):
            return wait

        self._evictions.take(now)
        pod = view.workload.members[eviction.uid].pod
        policy = self._policies.get(view.policy_key)
        known = frozenset(view.workload.members)
        move = Move(
            eviction.uid,
            objects.key(pod),
            eviction.target,
            known,
            reason,
            objects.controller_uid(pod),
            context.better_than(eviction.target),
            context.fits[eviction.target],
        )
        moves.begin(view, move)  # other workloads look while the eviction is on its way
        why = move_events.explanation(view.policy, reason, eviction, context.snapshot)
        self._replacements.await_replacement(pod, why)
        try:
            await evict(self._client, pod)
        except (NotFound, Conflict):
            self._withdraw(context, move, pod)
            return SETTLED
        except ApiError as error:  # a budget, most often; what else there is users can mend as well
            self._withdraw(context, move, pod)
            moves.refused = error.message
            metrics.MOVES_REFUSED.labels(reason.value).inc()
            self.demands.report(key, reason, moves, Decision(left=1))
            move_events.refused(self._events, policy, pod, error.message)
            return max(_REFUSED, getattr(error, "retry_after", 0.0))
        except BaseException:
            self._withdraw(context, move, pod)
            raise

        moves.refused = moves.stuck = ""
        log.info("%s: %s", objects.key(pod), why)
        self.demands.moved(key, reason, moves)
        move_events.moved(self._events, policy, pod, why)
        return 0.0

    def _withdraw(self, context: MoveContext, move: Move, pod: Object) -> None:
        """Take a move back: the pod was not evicted."""
        context.moves.withdraw(context.view, move)
        self._replacements.withdraw(pod)
