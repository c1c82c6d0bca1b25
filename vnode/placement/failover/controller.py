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

from vnode.api import disruptions, kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.objects import Object
from vnode.api.token_bucket import MinuteLimits
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
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
        self._client = client
        self._proxies = proxies
        self._proxies_on = proxies_on
        self._bound = bound
        self._lost = lost
        self._policies = policies
        self._replacements = replacements
        self._events = events
        self._clock = clock
        self._limits: MinuteLimits[tuple[str, str]] = MinuteLimits()  # by namespace and policy
        self._nodes: set[str] = set()  # whose targets are lost
        self._evicted: set[str] = set()  # UIDs, until the store shows that they terminate
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
        if old is not None and (new is None or objects.is_terminating(new)):
            self._evicted.discard(objects.uid(old))

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
            if objects.uid(eviction.pod) in self._evicted:
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
        """Take a token of the pod's policy; return in how many seconds there is one, else 0."""
        policy, rate = eviction.policy, eviction.per_minute
        if policy is None or rate is None:
            return 0.0

        key, now = (policy.namespace, policy.name), self._clock.monotonic()
        return 0.0 if self._limits.take(key, rate, now) else self._limits.wait(key, rate, now)

    async def _evict(self, eviction: DueEviction, node: str, loss: TargetLoss) -> None:
        pod, why = eviction.pod, _explain(eviction, node)
        if eviction.is_ours:
            self._replacements.await_replacement(pod, why)

        try:
            await self._disrupt(pod, why)
            await self._client.discard(kinds.PODS, pod)
        except BaseException:
            self._replacements.withdraw(pod)
            raise

        self._evicted.add(objects.uid(pod))
        log.info("%s: %s; it is lost since %.0f s", objects.key(pod), why, loss.seconds)
        self._events.event(about(pod), WARNING, FAILED_OVER, why)

    async def _disrupt(self, pod: Object, why: str) -> None:
        """Write the condition by which a Job tells disruptions from failures."""
        condition = disruptions.condition(FAILOVER_REASON, why, self._clock.now())
        body = objects.status_patch(pod, {"conditions": [condition]})
        await self._client.patch(
            kinds.PODS,
            objects.name(pod),
            body,
            objects.namespace(pod),
            subresource="status",
            strategic=True,
        )


def _explain(eviction: DueEviction, node: str) -> str:
    lost = f"node {node} has been lost for {round(eviction.after)} s"
    if not eviction.is_ours:
        return f"{lost}, as long as the tolerations of this pod allow"

    return f"moved by {eviction.policy.name if eviction.policy else 'vnode'} (failover): {lost}"
