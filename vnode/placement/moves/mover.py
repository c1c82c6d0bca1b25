"""Takes the steps by which pods of a workload are moved: asks what is next, and evicts.

The filters of the scheduler say where there is room, by a pod of the workload that is fetched for
it. Evictions go through the Eviction API of the source, so that its disruption budgets are kept,
and at a bounded rate for all workloads together, in turns (`move_turns`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.errors import ApiError, Conflict, NotFound
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.eviction import Evictor
from vnode.placement.moves.demands import MovingPolicies, WantedMoves
from vnode.placement.moves.move import Move
from vnode.placement.moves.move_events import MoveEvents
from vnode.placement.moves.move_turns import MoveTurns
from vnode.placement.moves.policy_clusters import PolicyClusters
from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.placement.policies import decoding
from vnode.planning.failover import Replacements
from vnode.planning.move_policy import Openings
from vnode.planning.move_reasons import SETTLED
from vnode.planning.pod_size import size_of
from vnode.planning.policy import Policy
from vnode.planning.workload_key import PlannedWorkload, namespace_of
from vnode.scheduling.cache import Cache
from vnode.scheduling.snapshot import Snapshot
from vnode.telemetry import audit, metrics, turn_waits

PER_MINUTE: Final = 60  # evictions of all workloads together, over time
BURST: Final = 10  # evictions at once
PATIENT: Final = 60.0
"""Seconds after which a workload with pods to move is looked at again at the latest."""
_REFUSED: Final = 10.0  # seconds after which an eviction that was refused is tried again

Takers = Callable[[Object, Snapshot], tuple[frozenset[str], frozenset[str]]]
"""`Framework.takers`."""

Rooms = Callable[[Object, Snapshot], Mapping[str, int | None]]
"""How many more pods like one each node has room for; None if that is not known."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MoveStep:
    """What came of looking at a workload for one reason."""

    acted: bool = False
    """A step was due, taken or not: nothing is done for other reasons before."""
    delay: float | None = None
    """Seconds after which to look again; None if an event tells."""


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
        rooms: Rooms,
        policies: MovingPolicies,
        *,
        events: EventRecorder,
        clock: Clock,
        replacements: Replacements,
        placeholders: Openings | None = None,
        on_plan_freed: Callable[[str], None],
    ) -> None:
        self._client = client
        self._cache = cache
        self._takers = takers
        self._rooms = rooms
        self._events = MoveEvents(events, policies)
        self._clock = clock
        self._replacements = replacements
        self._placeholders = placeholders
        self._on_plan_freed = on_plan_freed
        self._evictor: Evictor[None] = Evictor(client, clock, burst=BURST, retry_after=_REFUSED)
        self.turns = MoveTurns(turn_waits.of("evictions of moves").note)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Forget what is known of a pod that ends; a handler for informers of pods."""
        self._evictor.on_pod(old, new)

    def end_look(self, key: PlannedWorkload) -> None:
        """Have the workload looked at whose turn it is, after this one was."""
        self.turns.end_look(key, self._evictor.wait(None, PER_MINUTE))

    async def step(self, moves: WorkloadMoves, wanted: WantedMoves) -> MoveStep:
        """Take one step for what is wanted, if one is due."""
        next_in, now = self._evictor.wait(None, PER_MINUTE), self._clock.monotonic()
        if not self.turns.ask(moves.key, moves.policy, next_in, now):
            return MoveStep(True, PATIENT)  # it is woken when it is its turn

        if self._is_connecting(moves.policy):
            return MoveStep(True, PATIENT)  # the event is that a connection has come to be

        template = await self._template(moves)
        if template is None:
            return MoveStep(True, SETTLED)

        await self._cache.promising.over(self._clock)
        snapshot = self._cache.snapshot()
        takers, rooms = self._takers(template, snapshot), self._rooms(template, snapshot)
        now, wall = self._clock.monotonic(), self._clock.now()
        step = PolicyClusters(
            moves=moves,
            wanted=wanted,
            workload_now=moves.look(wanted, snapshot.nodes, takers, rooms, now, wall),
            snapshot=snapshot,
            size=size_of(template),
            now=now,
            wall=wall,
        ).decide(self._placeholders)
        destination = step.decision.destination
        if destination and moves.head_for(destination, wanted.reason):
            self._on_plan_freed(namespace_of(moves.workload.key))

        if step.move is not None:
            return MoveStep(True, await self._evict(moves, wanted, step.move))

        if moves.report(wanted, step.decision):
            self._events.blocked(moves.policy, moves.workload.key, wanted.reason, step.decision)

        # Ages and back-offs pass without an event.
        return MoveStep(False, min(step.wait or PATIENT, PATIENT) if step.decision.left else None)

    def note_closed(self, moves: WorkloadMoves) -> bool:
        """Tell where moves were in vain; return whether that, or where they may go, is new."""
        news = moves.close(self._clock.monotonic(), self._clock.now())
        for node, until in (news or {}).items():
            target = self._cache.target_name(node)
            self._events.failed(moves.policy, moves.workload.key, target, until)

        return news is not None

    def _is_connecting(self, policy: Policy) -> bool:
        """Tell whether it is not known yet which of the policy's clusters answer."""
        nodes = self._cache.snapshot().nodes
        connecting = [node for node in nodes if node.virtual.connecting]
        return bool(connecting and policy.shares(connecting))

    async def _template(self, moves: WorkloadMoves) -> Object | None:
        """Return a pod as the owner makes the next one; None if there is none to be had.

        It is one of the workload, as it is stored: what informers keep of a bound pod is not enough
        for filters.
        """
        newest = moves.workload.newest
        if moves.template is None and newest is not None:
            name, namespace = objects.name(newest), objects.namespace(newest)
            try:
                moves.keep_template(await self._client.get(kinds.PODS, name, namespace))
            except NotFound:
                return None

        return moves.template

    async def _evict(self, moves: WorkloadMoves, wanted: WantedMoves, move: Move) -> float:
        """Evict the pod of a move, if it is its turn; return when to go on."""
        if wait := self._evictor.turn(None, PER_MINUTE):
            return wait

        policy, pod = moves.policy, moves.workload.members[move.uid].pod
        self.turns.pay(moves.key, policy)
        moves.begin(move)  # other workloads look while the eviction is on its way
        self._replacements.await_replacement(pod, move.why)
        asked_by, is_evicted = wanted.asked_by or decoding.subject_of(policy), False
        try:
            with audit.on_behalf_of(asked_by.because(move.why)):
                error = await self._evictor.evict(pod)

            is_evicted = error is None
        finally:
            if not is_evicted:
                moves.withdraw(move)
                self._replacements.withdraw(pod)

        if error is not None:
            return self._refuse(moves, wanted, pod, error)

        moves.confirm(wanted)
        log.info("%s: %s", move.key, move.why)
        self._events.moved(policy, pod, move.why)
        return 0.0

    def _refuse(
        self, moves: WorkloadMoves, wanted: WantedMoves, pod: Object, error: ApiError
    ) -> float:
        """Tell why a pod was not evicted, unless it is gone; return when to try again."""
        if isinstance(error, NotFound | Conflict):
            return SETTLED

        # A budget, most often; what else there is users can mend as well.
        moves.refuse(wanted, error.message)
        metrics.MOVES_REFUSED.labels(wanted.reason.value).inc()
        self._events.refused(moves.policy, pod, error.message)
        return self._evictor.retry_in(pod)
