"""Evicts the pods of lost clusters, as fast as their placement policies allow.

`LostTargets` says which clusters are lost, and for how long. Pods whose policy has `failover`
tolerate a node that is not ready without end, if the webhook has seen it; all others for as long as
their own tolerations say. Either are deleted here, like Kubernetes deletes pods by the taint of
such a node: without asking disruption budgets, and with the condition DisruptionTarget. Where
Kubernetes sets that taint, it does the same with the latter, a little later. Their finalizers keep
pods until their cluster answers again, and until then nothing can tell their delegates to end. Who
is to wait for a replacement even then, is up to `Replacements`.

The evictions of a policy are spread over time by a limit of its own, for all of its workloads and
clusters together. Another leader begins with one token. Namespaces take turns,
within the limit of a cluster-wide policy too.

All pods of lost clusters are looked at together, in slices and once a second at most: users can
change their pods and policies much more often.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, closing
from typing import Final, TypeAlias

from vnode.api import kinds, objects
from vnode.api.clock import Clock
from vnode.api.durations import TICK
from vnode.api.errors import VnodeError
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.api.turns import Turns, by_turns
from vnode.kube.client import Client
from vnode.kube.events import WARNING, EventRecorder, about
from vnode.kube.eviction import Evictor
from vnode.kube.informer import Informer
from vnode.placement.failover import deciding
from vnode.placement.failover.deciding import DueEviction
from vnode.placement.failover.lost_targets import LOOK_AGAIN, LostTargets, TargetLoss
from vnode.placement.policies import decoding
from vnode.placement.workload_index import OtherBoundPods
from vnode.planning.failover import FAILOVER_REASON, Replacements
from vnode.planning.policy import WatchedPolicies
from vnode.runtime.controller import Controller
from vnode.telemetry import audit, turn_waits

FAILED_OVER: Final = "FailedOver"

INTERVAL: Final = 1.0
"""Seconds from one look at all pods of lost clusters to the next."""

_ALL: Final = "lost targets"  # the only key: a limit holds for all of them together
_MOST_FAILURES: Final = 5  # evictions that fail before it is tried later: one pod holds up nobody

_Lane: TypeAlias = Generator[DueEviction]

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
        self._clock = clock
        self._next_look = -math.inf  # monotonic
        # At the rates of policies, by their namespaces and names.
        self._evictor: Evictor[tuple[str, str]] = Evictor(client, clock, interval=INTERVAL)
        self._nodes: set[str] = set()  # whose targets are lost
        self._turns: dict[str, Turns[str]] = {}  # of namespaces, by the limit that they share
        self._waits = turn_waits.of("failovers")
        self._controller: Controller[str] = Controller(
            "failovers", self._reconcile, subject=audit.agent, workers=1
        )

    async def run(self) -> None:
        """Evict until cancelled, once all pods and policies are known."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_pod)
        self._bound.subscribe(self._on_pod)
        self._policies.subscribe(lambda _namespace: self._controller.add(_ALL))
        self._lost.subscribe(self._on_target)
        await self._controller.run()

    def _on_target(self, node: str) -> None:
        if self._lost.loss(node) is not None:
            self._nodes.add(node)
            self._controller.add(_ALL)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        """Look at the cluster of a pod that is bound while it is being lost."""
        self._evictor.on_pod(old, new)
        node = objects.node_name(new or {})
        if node in self._nodes and new is not None and not objects.is_terminating(new):
            self._controller.add(_ALL)

    async def _reconcile(self, _all: str) -> float | None:
        """Evict the pods of lost clusters that are due; return when to go on."""
        if (left := self._next_look - self._clock.monotonic()) > 0:
            return left

        waits = list[float]()
        try:
            with ExitStack() as stack:
                found = await self._lanes(waits)
                lanes = deque(stack.enter_context(closing(lane)) for lane in found)
                if not await self._evict_by_turns(lanes, waits):
                    return INTERVAL
        finally:
            self._next_look = self._clock.monotonic() + INTERVAL

        return min(waits, default=None)

    async def _evict_by_turns(self, lanes: deque[_Lane], waits: list[float]) -> bool:
        """Evict one pod of each lane after the other; return False if things have changed.

        Who is concerned by that is left out: others go on.
        """
        failures, is_current = list[VnodeError](), True
        while lanes and len(failures) < _MOST_FAILURES:
            lane = lanes.popleft()
            eviction = next(lane, None)
            if eviction is None:
                continue

            node = objects.node_name(eviction.pod)
            loss = self._lost.loss(node)
            if loss is None or not loss.is_known or self._is_outdated(eviction):
                is_current = False  # while others were evicted, the cluster has come back, say
            elif wait := self._turn(eviction):
                waits.append(wait)
                if eviction.shared_limit:
                    continue  # nor is it the turn of any other in this lane
            else:
                namespace = objects.namespace(eviction.pod)
                self._turns[eviction.shared_limit].pay(namespace, 1)
                self._waits.note(namespace, loss.seconds - eviction.after)
                try:
                    await self._evict(eviction, node, loss)
                except VnodeError as error:
                    failures.append(error)

            lanes.append(lane)

        if failures:
            raise failures[0]

        return is_current

    async def _lanes(self, waits: list[float]) -> list[_Lane]:
        """Return who is due now, in lanes of which one more is evicted in turn.

        Each limit that namespaces have in common has a lane, all else another one; within a lane
        namespaces take turns. Add to `waits` when others are due.
        """
        found: dict[str, list[DueEviction]] = {}
        for node in sorted(self._nodes):
            async for eviction in in_slices(await self._due(node, waits), self._clock):
                found.setdefault(eviction.shared_limit, []).append(eviction)

        known = self._turns
        self._turns = {limit: known.get(limit, Turns(deciding.ALLOWANCE)) for limit in found}
        return [
            by_turns(self._turns[limit], evictions, deciding.namespace_of, deciding.rank_of)
            for limit, evictions in found.items()
        ]

    async def _due(self, node: str, waits: list[float]) -> list[DueEviction]:
        """Return who is due of the pods of a cluster, in order."""
        loss = self._lost.loss(node)
        if loss is None:
            self._nodes.discard(node)
            return []

        if not loss.is_known:
            waits.append(LOOK_AGAIN)
            return []

        found = list[tuple[tuple[float, int, str], DueEviction]]()
        async for pod in in_slices(self._pods_on(node), self._clock):
            eviction = deciding.eviction(pod, self._policies.of)
            if eviction is None or self._evictor.is_ending(pod):
                continue

            if (left := eviction.after - loss.seconds) >= TICK:
                waits.append(left)
            else:
                found.append((deciding.order(eviction), eviction))

        found.sort(key=lambda each: each[0])
        return [eviction for _order, eviction in found]

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
            with audit.on_behalf_of(_subject(eviction).because(why)):
                await self._evictor.delete(pod, FAILOVER_REASON, why)
        except BaseException:
            self._replacements.withdraw(pod)
            raise

        log.info("%s: %s; it is lost since %.0f s", objects.key(pod), why, loss.seconds)
        self._events.event(about(pod), WARNING, FAILED_OVER, why)


def _subject(eviction: DueEviction) -> audit.Subject:
    """Return the policy by which a pod is evicted; the pod itself, if by its tolerations."""
    if eviction.is_ours and eviction.policy is not None:
        return decoding.subject_of(eviction.policy)

    return audit.of(kinds.PODS, eviction.pod)


def _explain(eviction: DueEviction, node: str) -> str:
    lost = f"node {node} has been lost for {round(eviction.after)} s"
    if not eviction.is_ours:
        return f"{lost}, as long as the tolerations of this pod allow"

    return f"moved by {eviction.policy.name if eviction.policy else 'vnode'} (failover): {lost}"
