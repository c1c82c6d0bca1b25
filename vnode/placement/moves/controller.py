"""Moves pods that run by evicting them, one workload at a time, as their placement policies ask.

Whatever may change the decision about a workload wakes it: its pods, its policy, and what the
clusters have and say. Then `vnode.scheduling.placement.moving` decides, from the scheduler's counts
and filters, and one pod is evicted through the Eviction API of the source, so that its disruption
budgets are kept. The workload is looked at again until there is nothing left to do. Workloads of
which no pod overflowed, that are not drained and that nobody asks about are not looked at.

What is under way is known to one term only. A new leader takes pods that are not ready yet for
moves of the former, and waits for them (docs/decisions/0045).
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.accounts import PlannedNode, planned_node
from vnode.placement.counting import key_of
from vnode.placement.moves import situation
from vnode.placement.moves.demands import MoveDemands, PlannedWorkload
from vnode.placement.moves.mover import SETTLED, Mover, MovingPolicies, Takers
from vnode.placement.moves.plan_changes import PlanChanges
from vnode.placement.moves.rooms import OtherMoves
from vnode.placement.moves.under_way import Move
from vnode.placement.moves.workload_moves import MovableWorkload, WorkloadMoves
from vnode.runtime.controller import Controller
from vnode.runtime.links import Link, Links
from vnode.scheduling.cache import Cache
from vnode.scheduling.placement.moves import FailbackMode, Openings
from vnode.scheduling.placement.moving import Decision, Motive
from vnode.scheduling.placement.policy import Mode, Policy
from vnode.scheduling.placement.workloads import workload_of

_CHANGES: Final = PlannedWorkload("", "")  # the key that stands for all policies
_LOOKS: Final = 20  # at what clusters have free, at most, in the time of a stabilization
_PLANNED: Final = frozenset({Mode.SPREAD, Mode.FILL})

log = logging.getLogger(__name__)


class Moves:
    """Runs in the leader.

    `placeholders` answers for `failback` of mode Placeholder where pods have left some; else that
    is as mode Probe; whoever makes it calls `look_at` when one of its answers changes.
    """

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        nodes: Informer,
        links: Links,
        cache: Cache,
        takers: Takers,
        policies: MovingPolicies,
        *,
        events: EventRecorder,
        clock: Clock,
        placeholders: Openings | None = None,
    ) -> None:
        self.demands = MoveDemands()
        self._proxies = proxies
        self._nodes = nodes
        self._links = links
        self._cache = cache
        self._policies = policies
        self._clock = clock
        self._mover = Mover(
            client,
            cache,
            takers,
            policies,
            self.demands,
            events=events,
            clock=clock,
            placeholders=placeholders,
        )
        self._changes = PlanChanges()
        # The workloads that are looked at, until there is nothing left to do.
        self._workloads: dict[PlannedWorkload, WorkloadMoves] = {}
        self._controller: Controller[PlannedWorkload] = Controller(
            "moves", self._reconcile, workers=4
        )

    async def run(self) -> None:
        """Move pods until cancelled, once all pods are known."""
        await self._proxies.synced.wait()
        self._controller.add(_CHANGES)
        self._proxies.subscribe(self._on_pod)
        self._policies.subscribe(self._on_policies)
        self._nodes.subscribe(self._on_node)
        self._links.subscribe(self._on_link, lambda link: self._on_cluster(link.node_name))
        await self._controller.run()

    def look_at(self, workload: str) -> None:
        """Decide again about the workload of that key, if it has pods to move."""
        for key in self._workloads:
            if key.workload == workload:
                self._controller.add_after(key, SETTLED)

    def look_at_pods_of(self, namespace: str) -> None:
        """Decide about all workloads of a namespace: somebody asks for it."""
        for pod in self._proxies.store.values():
            if objects.namespace(pod) == namespace:
                self._check(pod)

    def planned(self, namespace: str) -> dict[PlannedWorkload, str]:
        """Return the workloads of a namespace that have a plan, and the policies that plan them."""
        found = {}
        for pod in self._proxies.store.values() if self._policies else ():
            if objects.namespace(pod) != namespace or objects.is_finished(pod):
                continue

            policy = self._policies.of(pod)
            if policy is not None and policy.mode in _PLANNED:
                key = PlannedWorkload(workload_of(pod, policy.group_by), policy.group_by)
                found[key] = policy.name

        return found

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        if self._policies and (old is None or new is None or _concerns(old) != _concerns(new)):
            self._check(new or old or {})

    def _on_policies(self) -> None:
        self._controller.add_after(_CHANGES, SETTLED)
        self._look_at_all()

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        if not self._policies:
            return

        before, after = (planned_node(node) if node else None for node in (old, new))
        if before != after:
            self._on_cluster(objects.name(new or old or {}))
            self._controller.add_after(_CHANGES, SETTLED)

    def _on_link(self, link: Link) -> None:
        def changed(_old: Object | None = None, _new: Object | None = None) -> None:
            self._on_cluster(link.node_name)

        link.summaries.subscribe(changed)
        link.on_health(changed)
        for informer in link.quotas:
            informer.subscribe(changed)

        changed()

    def _on_cluster(self, node: str) -> None:
        """Look at the workloads for which it matters what the cluster has."""
        for key, moves in self._workloads.items():
            if not moves.clusters or node in moves.clusters:
                self._controller.add_after(key, moves.settling)

    def _look_at_all(self) -> None:
        for pod in self._proxies.store.values() if self._policies else ():
            self._check(pod)

    def _check(self, pod: Object) -> None:
        policy = self._policies.of(pod)
        if policy is None or policy.mode not in _PLANNED:
            return

        key = PlannedWorkload(workload_of(pod, policy.group_by), policy.group_by)
        moves = self._workloads.get(key)
        if moves is None:
            if not (policy.drains or _fails_back(policy, pod) or self.demands.concerns(key)):
                return

            moves = self._workloads[key] = WorkloadMoves()

        if not objects.is_terminating(pod):
            moves.sample = pod

        self._controller.add_after(key, SETTLED)

    async def _reconcile(self, key: PlannedWorkload) -> float | None:
        if key == _CHANGES:
            self._find_changes()
            return None

        moves = self._workloads.get(key)
        policy = self._policies.of(moves.sample) if moves is not None and moves.sample else None
        if moves is None or policy is None or policy.mode not in _PLANNED:
            self._forget(key)
            return None

        workload = self._cache.workloads.of(moves.sample, policy.group_by)
        view = MovableWorkload(policy, workload, self._clock)
        now = self._clock.monotonic()
        moves.settle(view, self._is_there, now)
        delays, nodes = [moves.under_way.wait(now)], list(self._nodes.store.values())
        others = self._others(moves, now)
        for motive in self.demands.motives(key, policy):
            decision = Decision()
            if view.has_candidates(motive, nodes):
                moves.settling = _settling(motive, policy)
                acts, delay, decision = await self._mover.pursue(key, moves, view, motive, others)
                delays.append(delay)
                if acts:
                    break

            self.demands.report(key, motive, moves, decision)

        motives = self.demands.motives(key, policy)
        is_idle = not any(view.has_candidates(motive, nodes) for motive in motives)
        if is_idle and not moves.under_way and not moves.under_way.barred(now):
            self._forget(key)

        return min((delay for delay in delays if delay is not None), default=None)

    def _others(self, moves: WorkloadMoves, now: float) -> OtherMoves:
        """Return the moves of all other workloads."""
        going, targets = Counter[str](), set[str]()
        for other in self._workloads.values():
            if other is not moves:
                going += other.under_way.missing()
                targets |= other.under_way.targets(now)

        return OtherMoves(going, frozenset(targets))

    def _forget(self, key: PlannedWorkload) -> None:
        self._workloads.pop(key, None)
        self._mover.forget(key)
        self.demands.forget(key)

    def _is_there(self, move: Move) -> bool:
        pod = self._proxies.store.get(move.key)
        return pod is not None and objects.uid(pod) == move.uid

    def _find_changes(self) -> None:
        """Have pods moved to where they are planned since a policy or its clusters changed."""
        nodes: list[PlannedNode] = [planned_node(node) for node in self._nodes.store.values()]
        changed = self._changes.observe(self._policies.in_force(), nodes)
        for policy_key, change in changed.items():
            log.info("placement policy %s: %s: pods are moved", policy_key, change.value)

        for pod in self._proxies.store.values() if changed else ():
            policy = self._policies.of(pod)
            if policy is not None and key_of(policy) in changed and policy.mode in _PLANNED:
                self.demands.reschedule(
                    PlannedWorkload(workload_of(pod, policy.group_by), policy.group_by)
                )
                self._check(pod)


def _settling(motive: Motive, policy: Policy) -> float:
    """Return for how long changes of clusters are awaited before they are looked at together.

    What targets have free changes all the time, and pods may wait to go back for days.
    """
    if motive is not Motive.FAILBACK:
        return SETTLED

    return max(SETTLED, policy.failback.stabilization / _LOOKS)


def _fails_back(policy: Policy, pod: Object) -> bool:
    """Tell whether the pod is to go back, once there is room."""
    is_wanted = policy.failback.mode is not FailbackMode.NEVER
    return is_wanted and situation.has_overflowed(pod)


def _concerns(pod: Object) -> tuple[object, ...]:
    """Return what moves depend on."""
    return (
        objects.node_name(pod),
        objects.is_terminating(pod),
        objects.is_finished(pod),
        objects.labels(pod),
        situation.is_ready(pod),
    )
