"""Evicts the pods of lost clusters, as fast as their placement policies allow.

A virtual node that is not ready gets a NoExecute taint by Kubernetes; its pods tolerate it without
end, if the webhook has seen that their policy has `failover`. Here they are deleted instead, like
Kubernetes deletes pods by that taint: without asking disruption budgets, and with the condition
DisruptionTarget. Their finalizers keep them until their cluster answers again, and until then
nothing can tell their delegates to end. Who is to wait for a replacement even then, is up to
`Replacements`.

The evictions of a policy are spread over time by a bucket of its own, for all of its workloads and
clusters together. Another leader begins with a full one, which has one token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from vnode.api import disruptions, kinds, objects
from vnode.api.clock import TICK, Clock
from vnode.api.objects import Object
from vnode.api.token_bucket import TokenBucket
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.kube.informer import Informer
from vnode.placement.failover import deciding
from vnode.placement.failover.deciding import DueEviction
from vnode.runtime.controller import Controller
from vnode.scheduling.placement.failover import FAILOVER_REASON, Replacements
from vnode.scheduling.placement.policy import WatchedPolicies

FAILED_OVER: Final = "FailedOver"

log = logging.getLogger(__name__)


class Failovers:
    """Runs in the leader; `pods_on` returns the proxy pods that are bound to a virtual node."""

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        nodes: Informer,
        pods_on: Callable[[str], Iterable[Object]],
        policies: WatchedPolicies,
        replacements: Replacements,
        *,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._proxies = proxies
        self._nodes = nodes
        self._pods_on = pods_on
        self._policies = policies
        self._replacements = replacements
        self._events = events
        self._clock = clock
        self._buckets: dict[tuple[str, str, int], TokenBucket] = {}  # by policy and its rate
        self._evicted: set[str] = set()  # UIDs, until the store shows that they terminate
        self._controller: Controller[str] = Controller("failovers", self._reconcile, workers=1)

    async def run(self) -> None:
        """Evict until cancelled, once all pods and policies are known."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_pod)
        self._policies.subscribe(self._enqueue_all)
        self._nodes.subscribe(self._on_node)
        await self._controller.run()

    def _on_node(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and deciding.lost_since(new) is not None:
            self._controller.add(objects.name(new))

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        """Look at the cluster of a pod that is bound while it is being lost."""
        if old is not None and (new is None or objects.is_terminating(new)):
            self._evicted.discard(objects.uid(old))

        node = objects.node_name(new or {})
        if new is not None and self._since(node) is not None and not objects.is_terminating(new):
            self._controller.add(node)

    def _enqueue_all(self) -> None:
        self._buckets.clear()
        for node in self._nodes.store.values():
            self._on_node(None, node)

    def _since(self, node: str) -> float | None:
        found = self._nodes.store.get(node) if node else None
        return deciding.lost_since(found) if found is not None else None

    async def _reconcile(self, node: str) -> float | None:
        """Evict the pods of a lost cluster that are due; return when to go on."""
        since = self._since(node)
        if since is None:
            return None

        waits = []
        for eviction in deciding.due(self._pods_on(node), self._policies.of, since):
            if objects.uid(eviction.pod) in self._evicted:
                continue

            if self._since(node) != since or self._policies.of(eviction.pod) != eviction.policy:
                return 0.0  # while others were evicted, the cluster has come back, say

            left = eviction.at - self._clock.now().timestamp()
            if left >= TICK:
                waits.append(left)
            elif wait := self._turn(eviction):
                waits.append(wait)
            else:
                await self._evict(eviction, node)

        return min(waits, default=None)

    def _turn(self, eviction: DueEviction) -> float:
        """Take a token of the pod's policy; return in how many seconds there is one, else 0."""
        policy, rate = eviction.policy, eviction.failover.per_minute
        if policy is None or rate is None:
            return 0.0

        key = policy.namespace, policy.name, rate
        bucket = self._buckets.setdefault(key, TokenBucket(rate / 60, 1))
        now = self._clock.monotonic()
        return 0.0 if bucket.take(now) else bucket.wait(now)

    async def _evict(self, eviction: DueEviction, node: str) -> None:
        pod, seconds = eviction.pod, round(eviction.failover.toleration)
        by = eviction.policy.name if eviction.policy else "vnode"
        why = f"moved by {by} (failover): node {node} has been lost for {seconds} s"
        self._replacements.await_replacement(pod, why)
        try:
            await self._disrupt(pod, why)
            await self._client.discard(kinds.PODS, pod)
        except BaseException:
            self._replacements.withdraw(pod)
            raise

        self._evicted.add(objects.uid(pod))
        log.info("%s: %s", objects.key(pod), why)
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
