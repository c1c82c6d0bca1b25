"""Writes into the status of each policy whether it is in force, and what came of it.

Pods are counted one change at a time, also of their policies (`workload_index`). A policy whose
counts changed is reconciled after a second, so that a burst of pods is one write, and no more often
than in intervals (`vnode.runtime.write_limits`); only what differs is written. Without policies
nothing is counted. Only the leader writes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from vnode.api import objects, status_conditions
from vnode.api.clock import Clock
from vnode.api.identity import parent_key
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import EventRecorder
from vnode.kube.informer import Informer
from vnode.placement.decisions.published import PublishingState
from vnode.placement.decisions.publisher import DecisionPublisher
from vnode.placement.failover.lost_targets import LostTargets
from vnode.placement.policies import decoding
from vnode.placement.policies.collection import PlacementPolicies
from vnode.placement.status import conditions, counting
from vnode.placement.status.accounting import Accounting, ClosedClusters
from vnode.placement.status.counting import WorkloadCounts
from vnode.placement.workload_index import OtherBoundPods, WorkloadIndex
from vnode.planning import policy_node
from vnode.planning.policy import Policy
from vnode.runtime import write_limits
from vnode.runtime.controller import Controller
from vnode.runtime.link import Link
from vnode.runtime.links import Links
from vnode.runtime.status_reporter import StatusReporter
from vnode.telemetry import audit

SETTLING: Final = 1.0  # seconds from a change of counts to the write
_BATCH: Final = 200  # pods that are counted at a time
_COUNT: Final = ""  # the key that stands for all pods, which are counted once


class PolicyStatusController:
    """Keeps the status of all policies; one for each term of a leader.

    `proxies` and `nodes` are informers that others run. `weights` returns what each virtual node
    weighs for a workload (by its key) whose policy has no weights, None if it is not known.
    """

    def __init__(
        self,
        client: Client,
        policies: PlacementPolicies,
        index: WorkloadIndex,
        proxies: Informer,
        bound: OtherBoundPods,
        nodes: Informer,
        links: Links,
        *,
        publisher: DecisionPublisher | None = None,
        lost: LostTargets | None = None,
        weights: Callable[[Policy, str], Mapping[str, int] | None] = lambda _policy, _key: None,
        moves: ClosedClusters | None = None,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._policies = policies
        self._index = index
        self._proxies = proxies
        self._bound = bound
        self._nodes = nodes
        self._links = links
        self._accounting = Accounting(links, weights, moves)
        self._moves = moves
        self._publisher = publisher
        self._lost = lost
        self._clock = clock
        self._is_open = False  # pods are counted one by one; before that, all at once
        self._is_counted = False  # all pods are, once
        self._counts = WorkloadCounts()
        limit = write_limits.PLACEMENT_POLICIES
        self._reports = StatusReporter(
            client,
            "placementpolicies",
            limit,
            wake=self._wake,
            clock=clock,
            events=events,
            is_news=status_conditions.turned_unless(status_conditions.READY),
        )
        self._controller: Controller[str] = Controller(
            "placement-status",
            self._reconcile,
            subject=audit.agent,
            workers=2,
            lane=objects.key_namespace,
            namespace=objects.key_namespace,
            total=8,
        )

    async def run(self) -> None:
        """Write until cancelled, once all pods are known."""
        await self._proxies.synced.wait()
        if self._publisher is not None:
            self._publisher.subscribe(self._wake)

        if self._lost is not None:
            self._lost.subscribe(lambda _node: self._settle(self._policies.keys()))

        if self._moves is not None:
            self._moves.subscribe(lambda policy: self._settle((policy,)))

        self._policies.subscribe(self._on_policies)
        self._index.subscribe(lambda pod: self._on_pod(pod, pod))
        self._policies.subscribe_verdicts(lambda policy: self._settle((policy,)))
        for informer in self._policies.informers:
            informer.subscribe_by_key(self._wake)

        self._proxies.subscribe(self._on_pod)
        self._bound.subscribe(self._on_pod)
        self._nodes.subscribe(self._on_node)
        self._links.subscribe(self._on_link, lambda _link: self._settle(self._policies.keys()))
        self._is_open = True
        self._controller.add(_COUNT)
        await self._controller.run()

    def _wake(self, key: str) -> None:
        self._controller.add(key)

    def _settle(self, policies: Iterable[str]) -> None:
        """Reconcile these policies once their counts have settled."""
        for key in policies:
            self._controller.add_after(key, SETTLING)

    def _on_policies(self, namespace: str) -> None:
        """Look at those whose conditions say what others decide, or what is published."""
        in_force = self._policies.in_force().items()
        self._settle(
            key
            for key, policy in in_force
            if policy.namespace == namespace and (policy.decision or policy.publishing)
        )

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        if not self._is_open or not (self._policies or self._counts):
            return

        pod = counting.counted(new, self._policies.of) if new is not None else None
        self._settle(self._counts.set(objects.key(objects.latest(old, new)), pod))

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        before, after = (policy_node.planned_node(node) if node else None for node in (old, new))
        if before != after:
            self._settle(self._policies.keys())

    def _on_link(self, link: Link) -> None:
        link.chaperons.subscribe(self._on_chaperon)

    def _on_chaperon(self, old: Object | None, new: Object | None) -> None:
        if self._counts and (old is None or new is None):
            policy = self._counts.policy_of(parent_key(objects.latest(old, new)))
            if policy:
                self._settle((policy,))

    async def _reconcile(self, key: str) -> float | None:
        if key == _COUNT:
            await self._count_all()
            return None

        obj, verdict = self._policies.get(key), self._policies.verdict(key)
        if obj is None or verdict is None:
            self._reports.forget(key)
            if self._publisher is not None:
                self._publisher.forget(key)

            return None

        if not verdict.is_final:
            return None  # what is written now would be remembered; it is judged again

        if self._reports.pending(key, obj):
            return None

        nodes = [policy_node.planned_node(node) for node in self._nodes.store.values()]
        publishing = self._publish(key, obj, verdict.policy)
        wanted = conditions.build(obj, verdict, nodes, publishing, self._clock.now())
        if self._lost is not None and verdict.policy is not None:
            moments = self._lost.moments()
            space = objects.namespace(obj)
            there = policy_node.covering(nodes, space) if space else nodes
            wanted += conditions.of_lost(obj, verdict.policy, there, moments, self._clock.now())

        wanted.append(status_conditions.ready(obj, wanted, self._clock.now()))
        tallies = self._counts.of(key) if verdict.policy is not None else {}
        account = await self._accounting.status(verdict.policy, tallies, nodes)
        status = {**account, "conditions": conditions.merged(obj, wanted)}
        return await self._reports.report(key, decoding.kind_of(obj), obj, status)

    def _publish(self, key: str, obj: Object, policy: Policy | None) -> PublishingState | None:
        """Offer where the policy's pods are, and return how far that is published."""
        if self._publisher is None or policy is None or not self._is_counted:
            return None

        pods = Counter[str]()
        for tally in self._counts.of(key).values() if policy.publishing is not None else ():
            pods += tally.running + tally.starting

        return self._publisher.offer(key, obj, decoding.kind_of(obj), policy.publishing, pods)

    async def _count_all(self) -> None:
        """Count the pods that there are when the leader begins."""
        found = {*self._counts.keys(), *(self._proxies.store if self._policies else ())}
        if self._policies:
            for node in self._nodes.store:
                found |= {objects.key(pod) for pod in self._bound.pods_on(node)}

        changed = set[str]()
        for number, key in enumerate(found, 1):
            pod = self._proxies.store.get(key) or self._bound.get(key)
            entry = counting.counted(pod, self._policies.of) if pod is not None else None
            changed |= self._counts.set(key, entry)
            if number % _BATCH == 0:
                await asyncio.sleep(0)

        self._settle(changed)
        if not self._is_counted:
            self._is_counted = True
            self._settle(k for k, p in self._policies.in_force().items() if p.publishing)
