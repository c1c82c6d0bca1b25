"""Moves pods that run by evicting them, one workload at a time, as their placement policies ask.

Whatever may change the decision about a workload wakes it: its pods, its policy, and what the
clusters have and say. Then `vnode.planning.moving` decides, from the scheduler's counts
and filters, and one pod is evicted through the Eviction API of the source, so that its disruption
budgets are kept. The workload is looked at again until there is nothing left to do. Workloads of
which no pod overflowed, that are not drained and that nobody asks about are not looked at.

What is under way is known to one term only. A new leader takes pods that are not ready yet for
moves of the former, and waits for them (docs/decisions/0045). That a workload is moved as a whole
its pods say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.listeners import Listeners
from vnode.api.objects import Object
from vnode.kube.informer import Informer
from vnode.placement.moves.demands import PlannedWorkload
from vnode.placement.moves.mover import SETTLED, Mover, MovingPolicies
from vnode.placement.moves.plan_changes import PlanChanges
from vnode.placement.moves.under_way import Move
from vnode.placement.moves.watched_workloads import WatchedWorkloads, concerns, key_of_workload
from vnode.placement.moves.workload_moves import MovableWorkload, WorkloadMoves
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning.moving import Decision, MoveReason
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode, planned_node
from vnode.runtime.controller import Controller
from vnode.runtime.links import Link, Links
from vnode.scheduling.cache import Cache

_CHANGES: Final = PlannedWorkload("", "")  # the key that stands for all policies
_LOOKS: Final = 20  # at what clusters have free, at most, in the time of a stabilization

log = logging.getLogger(__name__)


class Moves:
    """Runs in the leader.

    `on_plan_freed` is called when pods that wait may go elsewhere. Whoever answers the mover for
    placeholders calls `look_at` when one of these answers changes.
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
        on_plan_freed: Callable[[], None],
    ) -> None:
        self.demands = mover.demands
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
        self._workloads = WatchedWorkloads(index, policies, self.demands)
        self._closings: Listeners[str] = Listeners()
        self._controller: Controller[PlannedWorkload] = Controller(
            "moves", self._reconcile, workers=4
        )

    async def run(self) -> None:
        """Move pods until cancelled, once all pods are known."""
        await self._proxies.synced.wait()
        self._controller.add(_CHANGES)
        self._proxies.subscribe(self._on_pod)
        # At once: what follows is a change of what is seen now.
        self._policies.subscribe(lambda _namespace: self._controller.add(_CHANGES))
        self._index.subscribe(self._check)
        self._nodes.subscribe(self._on_node)
        self._links.subscribe(self._on_link, lambda link: self._on_cluster(link.node_name))
        await self._controller.run()

    def look_at(self, workload: str) -> None:
        """Decide again about the workload of that key, if it has pods to move."""
        for key in self._workloads.of(workload):
            self._controller.add_after(key, SETTLED)

    def look_at_pods_of(self, namespace: str) -> None:
        """Decide about all workloads of a namespace: somebody asks for it."""
        for pod in self._index.pods_in(namespace):
            self._check(pod)

    def closed(self, workload: str, group_by: str) -> dict[str, datetime]:
        """Return until when no pod of a workload is moved to the nodes where that was in vain."""
        found = self._workloads.get(PlannedWorkload(workload, group_by))
        return {n: each.until for n, each in found[0].closed.items()} if found else {}

    def subscribe(self, changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of a policy when `closed` changes for a workload of it."""
        self._closings.add(changed)

    def planned(self, namespace: str) -> dict[PlannedWorkload, str]:
        """Return the workloads of a namespace that have a plan, and the policies that plan them."""
        return self._workloads.planned(namespace)

    def unplanned(self, namespace: str, policy: str, workloads: Collection[str]) -> list[str]:
        """Return why nothing can be moved of a PlacementPolicy (if one is named) or workloads."""
        problem = self._workloads.problem_of_policy(namespace, policy) if policy else ""
        if problem:
            return [problem]

        return [self._workloads.problem_of(namespace, each, policy) for each in workloads]

    def _check(self, pod: Object) -> None:
        if (key := self._workloads.find(pod)) is not None:
            self._controller.add_after(key, SETTLED)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        if self._policies and (old is None or new is None or concerns(old) != concerns(new)):
            self._check(objects.latest(old, new))

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        if not self._policies:
            return

        before, after = (planned_node(node) if node else None for node in (old, new))
        if before != after:
            for key, moves in self._workloads.items():  # it may be new to any policy
                self._controller.add_after(key, moves.settling)

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

    async def _reconcile(self, key: PlannedWorkload) -> float | None:
        if key == _CHANGES:
            await self._find_changes()
            return None

        found = self._workloads.get(key)
        if found is None:
            self._forget(key)
            return None

        moves, policy = found
        if not policy.reschedule:
            self.demands.stay(key)

        workload = self._cache.workloads.of(moves.sample, policy.group_by)
        view = MovableWorkload(policy, workload, self._clock)
        now = self._clock.monotonic()
        moves.settle(view, self._is_there, now)
        if moves.resume(view):
            self._on_plan_freed()

        if moves.has_arrived(view):
            moves.reason = None
            self._cache.workloads.end_move(key.workload, key.group_by)

        delays, nodes = [moves.under_way.wait(now)], list(self._nodes.store.values())
        others = self._workloads.others(moves, now)
        for reason in self._reasons(key, moves, policy):
            decision = Decision()
            if view.has_candidates(reason, nodes):
                moves.settling = _settling(reason, policy)
                acts, delay, decision = await self._mover.pursue(key, moves, view, reason, others)
                delays.append(delay)
                if acts:
                    break

            self.demands.report(key, reason, moves, decision)

        self._note_closed(moves, view)
        reasons = self._reasons(key, moves, policy)
        is_idle = not any(view.has_candidates(reason, nodes) for reason in reasons)
        if is_idle and not moves.under_way and not moves.under_way.in_backoff(now):
            self._forget(key)

        return min((delay for delay in delays if delay is not None), default=None)

    def _note_closed(self, moves: WorkloadMoves, view: MovableWorkload) -> None:
        """Tell where moves were in vain, and where that counts no longer."""
        news = moves.close(self._clock.monotonic(), self._clock.now())
        for node in news or ():
            self._mover.tell_failed(view, node, moves.closed[node].until)

        if news is not None:
            self._closings.call(view.policy_key)

    def _reasons(
        self, key: PlannedWorkload, moves: WorkloadMoves, policy: Policy
    ) -> list[MoveReason]:
        """Return why pods may be moved; one that is being moved as one is not left in between."""
        reasons = self.demands.reasons(key, policy)
        begun = moves.reason
        return reasons if begun is None or begun in reasons else [*reasons, begun]

    def _forget(self, key: PlannedWorkload) -> None:
        if self._workloads.pop(key):
            self._cache.workloads.end_move(key.workload, key.group_by)

        self._mover.forget(key)
        self.demands.forget(key)

    def _is_there(self, move: Move) -> bool:
        pod = self._proxies.store.get(move.key)
        return pod is not None and objects.uid(pod) == move.uid

    async def _find_changes(self) -> None:
        """Have pods moved to where they are planned since a policy or its clusters changed."""
        nodes: list[PlannedNode] = [planned_node(node) for node in self._nodes.store.values()]
        changed = self._changes.observe(self._policies.in_force(), nodes)
        for policy_key, change in changed.items():
            log.info("placement policy %s: %s: pods are moved", policy_key, change.value)

        if changed:
            await self._index.current()

        for policy_key in changed:
            for pod in self._index.pods_of(policy_key):
                if (key := key_of_workload(pod, self._policies.of(pod))) is not None:
                    self.demands.reschedule(key)
                    self._check(pod)


def _settling(reason: MoveReason, policy: Policy) -> float:
    """Return for how long changes of clusters are awaited before they are looked at together.

    What targets have free changes all the time, and pods may wait to go back for days.
    """
    if reason is not MoveReason.FAILBACK:
        return SETTLED

    return max(SETTLED, policy.failback.stable_after(is_asked=False) / _LOOKS)
