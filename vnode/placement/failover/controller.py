"""Evicts the pods of lost clusters, as fast as their placement policies allow.

`LostTargets` says which clusters are lost, and for how long. Pods whose policy has `failover`
tolerate a node that is not ready without end, if the webhook has seen it; all others for as long as
their own tolerations say. Either are deleted here, like Kubernetes deletes pods by the taint of
such a node: without asking disruption budgets, and with the condition DisruptionTarget. Where
Kubernetes sets that taint, it does the same with the latter, a little later. Their finalizers keep
pods until their cluster answers again, and until then nothing can tell their delegates to end. Who
is to wait for a replacement even then, is up to `Replacements`.

The evictions of a policy are spread over time by a limit of its own, for all of its workloads and
clusters together. Another leader begins with one token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.kube.eviction import Evictor
from vnode.kube.informer import Informer
from vnode.placement.failover import deciding
from vnode.placement.failover.deciding import DueEviction
from vnode.placement.failover.lost_targets import LOOK_AGAIN, LostTargets, TargetLoss
from vnode.placement.workload_index import OtherBoundPods
from vnode.planning.failover import FAILOVER_REASON, Replacements
from vnode.planning.policy import WatchedPolicies
from vnode.runtime.controller import Controller

FAILED_OVER: Final = "FailedOver"

log = logging.getLogger(__name__)


class Failovers:
    """Runs in the leader; `proxies_on` returns the proxy pods that are bound to a virtual node,
    `bound` those that others have bound there."""

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        proxies_on: Callable[[str], Iterable[Object]],
        bound: OtherBoundPods,
        lost: LostTargets,
        policies: WatchedPolicies,
        replacements: Replacements,
        *,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._proxies = proxies
        self._proxies_on = proxies_on
        self._bound = bound
        self._lost = lost
        self._policies = policies
        self._replacements = replacements
        self._events = events
        # At the rates of policies, by their namespaces and names.
        self._evictor: Evictor[tuple[str, str]] = Evictor(client, clock)
        self._nodes: set[str] = set()  # whose targets are lost
        self._controller: Controller[str] = Controller("failovers", self._reconcile, workers=1)

    async def run(self) -> None:
        """Evict until cancelled, once all pods and policies are known."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_pod)
        self._bound.subscribe(self._on_pod)
        self._policies.subscribe(lambda _namespace: self._enqueue_all())
        self._lost.subscribe(self._on_target)
        await self._controller.run()

    def _on_target(self, node: str) -> None:
        if self._lost.loss(node) is not None:
            self._nodes.add(node)
            self._controller.add(node)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        """Look at the cluster of a pod that is bound while it is being lost."""
        self._evictor.on_pod(old, new)
        node = objects.node_name(new or {})
        if node in self._nodes and new is not None and not objects.is_terminating(new):
            self._controller.add(node)

    def _enqueue_all(self) -> None:
        for node in self._nodes:
            self._controller.add(node)

    async def _reconcile(self, node: str) -> float | None:
        """Evict the pods of a lost cluster that are due; return when to go on."""
        loss = self._lost.loss(node)
        if loss is None:
            self._nodes.discard(node)
            return None

        if not loss.is_known:
            return LOOK_AGAIN

        waits = []
        for eviction in deciding.due(self._pods_on(node), self._policies.of):
            if self._evictor.is_ending(eviction.pod):
                continue

            now = self._lost.loss(node)
            if now is None or not now.is_known or self._is_outdated(eviction):
                return 0.0  # while others were evicted, the cluster has come back, say

            left = eviction.after - now.seconds
            if left >= TICK:
                waits.append(left)
            elif wait := self._turn(eviction):
                waits.append(wait)
            else:
                await self._evict(eviction, node, now)

        return min(waits, default=None)

    def _pods_on(self, node: str) -> list[Object]:
        return [*self._proxies_on(node), *self._bound.pods_on(node)]

    def _is_outdated(self, eviction: DueEviction) -> bool:
        return eviction.is_ours and self._policies.of(eviction.pod) != eviction.policy

    def _turn(self, eviction: DueEviction) -> float:
        """Return in how many seconds it is the pod's turn, by the rate of its policy."""
        policy, rate = eviction.policy, eviction.per_minute
        if policy is None or rate is None:
            return 0.0

        return self._evictor.turn((policy.namespace, policy.name), rate)

    async def _evict(self, eviction: DueEviction, node: str, loss: TargetLoss) -> None:
        pod, why = eviction.pod, _explain(eviction, node)
        if eviction.is_ours:
            self._replacements.await_replacement(pod, why)

        try:
            await self._evictor.delete(pod, FAILOVER_REASON, why)
        except BaseException:
            self._replacements.withdraw(pod)
            raise

        log.info("%s: %s; it is lost since %.0f s", objects.key(pod), why, loss.seconds)
        self._events.event(about(pod), WARNING, FAILED_OVER, why)


def _explain(eviction: DueEviction, node: str) -> str:
    lost = f"node {node} has been lost for {round(eviction.after)} s"
    if not eviction.is_ours:
        return f"{lost}, as long as the tolerations of this pod allow"

    return f"moved by {eviction.policy.name if eviction.policy else 'vnode'} (failover): {lost}"
