"""Moves pods that run by evicting them, one workload at a time, as their placement policies ask.

Whatever may change the decision about a workload wakes it: its pods, its policy, and what the
clusters have and say. Then `vnode.planning.moving` decides, from the scheduler's counts
and filters, and one pod is evicted through the Eviction API of the source, so that its disruption
budgets are kept. The workload is looked at again until there is nothing left to do. A workload is
known here if its policy drains clusters, a pod of it overflowed, it was being moved as a whole, or
somebody asks for it; all others cost nothing.

What is under way is known to one term only. A new leader takes pods that are not ready yet, and
those of a StatefulSet that end, for moves of the former, and waits for them (docs/decisions/0045).
That a workload is moved as a whole its pods say.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.api.slices import Slices, in_slices
from vnode.kube.informer import Informer
from vnode.placement.moves.demands import (
    MoveDemand,
    MovingPolicies,
    PlanChange,
)
from vnode.placement.moves.known_workloads import KnownWorkloads
from vnode.placement.moves.move import Move
from vnode.placement.moves.mover import Mover
from vnode.placement.moves.planned_workloads import PlannedWorkloads
from vnode.placement.moves.taken_places import TakenPlaces
from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning.move_policy import FailbackMode
from vnode.planning.move_reasons import SETTLED
from vnode.planning.plan_changes import PlanChanges
from vnode.planning.pod_facts import has_overflowed
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode, planned_node
from vnode.planning.unfinished_move import moved_for
from vnode.planning.workload_key import PlannedWorkload, namespace_of, planned_workload_of
from vnode.runtime.controller import Controller
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.sliced_work import SlicedWork
from vnode.scheduling.cache import Cache
from vnode.telemetry import audit

_CHANGES: Final = PlannedWorkload("", "")  # the key that stands for all policies
_ANY: Final = ""  # the node that stands for all clusters

log = logging.getLogger(__name__)


class Moves:
    """Runs in the leader.

    `on_plan_freed` is called with a namespace when pods that wait there may go elsewhere. Whoever
    answers the mover for placeholders calls `look_at` when one of these answers changes.
    """

    def __init__(
        self,
        mover: Mover,
        proxies: Informer,
        nodes: Informer,
        links: Links,
        cache: Cache,
        policies: MovingPolicies,
        index: WorkloadIndex,
        *,
        clock: Clock,
        on_plan_freed: Callable[[str], None],
    ) -> None:
        self.planned = PlannedWorkloads(index, policies, clock)
        self._mover = mover
        self._proxies = proxies
        self._nodes = nodes
        self._links = links
        self._cache = cache
        self._policies = policies
        self._index = index
        self._clock = clock
        self._on_plan_freed = on_plan_freed
        self._changes = PlanChanges()
        self._workloads = KnownWorkloads()
        self._taken = TakenPlaces()
        self._cluster_changes = SlicedWork(self._look_at_cluster, clock)
        # By namespace and what pods are grouped by, then by UID: to look at when all are counted.
        self._uncounted: dict[tuple[str, str], dict[str, Object]] = {}
        self._counting = SlicedWork(self._count, clock)
        self._closings: Listeners[str] = Listeners()
        self._controller: Controller[PlannedWorkload] = Controller(
            "moves",
            self._reconcile,
            subject=audit.agent,
            workers=2,
            lane=lambda key: namespace_of(key.workload),
            namespace=lambda key: namespace_of(key.workload),
            total=8,
        )
        mover.turns.subscribe(self._controller.add_after)

    async def run(self) -> None:
        """Move pods until cancelled, once all pods are known."""
        await self._proxies.synced.wait()
        self._controller.add(_CHANGES)
        self._proxies.subscribe(self._on_pod)
        self._proxies.subscribe(self._mover.on_pod)
        # At once: what follows is a change of what is seen now.
        self._policies.subscribe(lambda _namespace: self._controller.add(_CHANGES))
        self._index.subscribe(self._check)
        self._nodes.subscribe(self._on_node)
        self._links.subscribe(self._on_link, lambda link: self._cluster_changes.add(link.node_name))
        async with asyncio.TaskGroup() as group:
            group.create_task(self._controller.run(), name="move-pods")
            group.create_task(self._cluster_changes.run(), name="look-at-clusters-of-moves")
            group.create_task(self._counting.run(), name="count-workloads-of-moves")

    def look_at(self, workload: str) -> None:
        """Decide again about the workload of that key, if it has pods to move."""
        for key in self._workloads.keys_of(workload):
            self._controller.add_after(key, SETTLED)

    async def ask(self, namespace: str, demands: Mapping[PlannedWorkload, MoveDemand]) -> None:
        """Decide about all workloads of a namespace, on which somebody makes these demands."""
        there = set[PlannedWorkload]()
        async for pod in in_slices(self._index.pods_in(namespace), self._clock):
            await self._counted(pod)
            key = planned_workload_of(pod, self._policies.of(pod))
            self._check(pod, demands.get(key) if key else None)
            if key is not None:
                there.add(key)

        for key in demands.keys() - there:  # it has gone meanwhile
            demands[key].end()

    def drop(self, demands: Mapping[PlannedWorkload, MoveDemand]) -> None:
        """Forget demands."""
        for key, demand in demands.items():
            if moves := self._workloads.get(key):
                moves.demands.remove(demand)

    def closed(self, workload: str, group_by: str) -> dict[str, datetime]:
        """Return until when no pod of a workload is moved to the nodes where that was in vain."""
        moves = self._workloads.get(PlannedWorkload(workload, group_by))
        return moves.closed.until() if moves else {}

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of a policy when `closed` changes for a workload of it."""
        self._closings.add(changed)

    def _check(self, pod: Object, demand: MoveDemand | None = None) -> None:
        """Look at the workload of a pod, if there may be something to do.

        Without a `demand` at the latest when its namespace is counted; with one it is to be.
        """
        policy = self._policies.of(pod)
        key = planned_workload_of(pod, policy)
        if policy is None or key is None:
            return

        moves = self._workloads.get(key)
        if moves is None:
            if not (demand or _is_due(policy, pod)):
                return

            counted = objects.namespace(pod), policy.group_by
            if demand is None and not self._cache.workloads.is_counted(*counted):
                self._cache.workloads.begin(*counted)
                self._uncounted.setdefault(counted, {})[objects.uid(pod)] = pod
                self._counting.add(counted)
                return

            workload = self._cache.workloads.of(pod, policy.group_by)
            moves = WorkloadMoves(key, policy, workload, self._taken)
            self._workloads.add(moves)

        if demand is not None:
            moves.demands.add(demand)

        moves.meet(pod)
        self._controller.add_after(key, SETTLED)

    def _count(self, counted: tuple[str, str]) -> Iterator[None]:
        """Look at pods of a namespace once it is known how many there are of each workload."""
        yield from self._cache.workloads.steps(*counted)
        for pod in self._uncounted.pop(counted, {}).values():
            self._check(pod)
            yield

    async def _counted(self, pod: Object | None) -> None:
        """Have the workload of a pod counted, in slices, before somebody asks for it."""
        policy = self._policies.of(pod) if pod is not None else None
        if pod is not None and policy is not None:
            await self._cache.workloads.count(pod, policy.group_by, self._clock)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        if self._policies and (old is None or new is None or _concerns(old) != _concerns(new)):
            self._check(objects.latest(old, new))

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        if not self._policies:
            return

        before, after = (planned_node(node) if node else None for node in (old, new))
        if before != after:
            self._cluster_changes.add(_ANY)  # it may be new to any policy
            self._controller.add_after(_CHANGES, SETTLED)

    def _on_link(self, link: Link) -> None:
        def changed(_old: Object | None = None, _new: Object | None = None) -> None:
            self._cluster_changes.add(link.node_name)

        link.summaries.subscribe(changed)
        link.on_health(changed)
        for informer in link.quotas:
            informer.subscribe(changed)

        changed()

    def _look_at_cluster(self, node: str) -> Iterator[None]:
        """Look at the workloads for which it matters what the cluster has."""
        for moves in self._workloads.all():
            if node == _ANY or not moves.clusters or node in moves.clusters:
                self._controller.add_after(moves.key, moves.settling)

            yield

    async def _reconcile(self, key: PlannedWorkload) -> float | None:
        if key == _CHANGES:
            await self._find_changes()
            return None

        try:
            return await self._look(key)
        finally:
            self._mover.end_look(key)

    async def _look(self, key: PlannedWorkload) -> float | None:
        """Take the next step for a workload; return when to look at it again."""
        moves = self._workloads.get(key)
        if moves is not None:  # of which moves see all pods at once below, and there may be many
            async for member in in_slices(list(moves.workload.members.values()), self._clock):
                member.facts()

            await self._counted(moves.sample)

        policy = self._policies.of(moves.sample) if moves is not None and moves.sample else None
        if moves is None or policy is None or planned_workload_of(moves.sample, policy) != key:
            self._forget(key)
            return None

        nodes, now = self._planned_nodes(), self._clock.monotonic()
        workload = self._cache.workloads.of(moves.sample, policy.group_by)
        slices = Slices(self._clock)  # to settle, and each step, takes in all of its pods
        settled = moves.settle(policy, workload, self._is_there, now, self._clock.now())
        if settled.resumed:
            self._on_plan_freed(namespace_of(key.workload))

        if settled.arrived:
            self._cache.workloads.end_move(key.workload, key.group_by)

        delays = [settled.wait]
        for wanted in moves.due(nodes):
            await slices.give_way()
            step = await self._mover.step(moves, wanted)
            delays.append(step.delay)
            if step.acted:
                break

        if self._mover.note_closed(moves):
            self._closings.call(policy.key)

        if moves.is_idle(nodes, now):
            self._forget(key)

        return min((delay for delay in delays if delay is not None), default=None)

    def _forget(self, key: PlannedWorkload) -> None:
        if moves := self._workloads.pop(key):
            moves.under_way.leave()
            moves.demands.end()
            self._cache.workloads.end_move(key.workload, key.group_by)

        self._mover.turns.leave(key)

    def _is_there(self, move: Move) -> bool:
        pod = self._proxies.store.get(move.key)
        return pod is not None and objects.uid(pod) == move.uid

    def _planned_nodes(self) -> list[PlannedNode]:
        return [planned_node(node) for node in self._nodes.store.values()]

    async def _find_changes(self) -> None:
        """Have pods moved to where they are planned since a policy or its clusters changed."""
        changed = list[str]()
        seen = self._changes.observe(dict(self._policies.in_force()), self._planned_nodes())
        async for policy_key, change in in_slices(seen, self._clock):
            if change is not None:
                log.info("placement policy %s: %s: pods are moved", policy_key, change.value)
                changed.append(policy_key)

        if changed:
            await self._index.current()

        for policy_key in changed:
            pods = self._index.pods_of(policy_key)
            async for pod in in_slices(pods, self._clock):  # a policy may be for thousands
                await self._counted(pod)
                self._check(pod, PlanChange())


def _is_due(policy: Policy, pod: Object) -> bool:
    """Tell whether a pod's workload is to be looked at though nobody asks for it."""
    if policy.drains or (policy.is_together and moved_for(pod) is not None):
        return True

    return policy.failback.mode is not FailbackMode.NEVER and has_overflowed(pod)


def _concerns(pod: Object) -> tuple[object, ...]:
    """Return what moves depend on."""
    return (
        objects.node_name(pod),
        objects.is_terminating(pod),
        objects.is_finished(pod),
        objects.labels(pod),
        objects.is_ready(pod),
    )
