"""Writes `pod-deletion-cost` on the pods of planned ReplicaSets, so that they shrink by the plan.

The cost of a pod must be there before the number of replicas drops, so it follows the pods as they
come and go. Only what differs is written, at a bounded rate that namespaces share, those that are
to stay longest first: what has no cost yet counts as 0 and goes before them. A cost that the
user has set is left alone; ours is repeated in an annotation of our own, by which we know it
(docs/decisions/0044).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from vnode.api import keys, kinds, numbers, objects, resources
from vnode.api.clock import Clock
from vnode.api.objects import Object
from vnode.api.slices import in_slices
from vnode.api.token_bucket import TokenBucket
from vnode.kube.client import Client
from vnode.kube.informer import Informer
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning import deletion_cost
from vnode.planning.deletion_cost import PlacedPod
from vnode.planning.policy import Policies, Policy
from vnode.planning.seats import MAX_WEIGHT
from vnode.planning.workload_key import namespace_of, workload_of
from vnode.runtime.controller import Controller
from vnode.runtime.expectations import Expectations
from vnode.scheduling.cache import Cache
from vnode.telemetry import audit

RATE: Final = 20.0  # writes a second, over time
BURST: Final = 100  # writes at once
_SETTLED: Final = 1.0  # seconds in which changes of a workload are awaited, to be written together
_BATCH: Final = 100  # writes of one workload before it is looked at anew, and others have a turn


class _Planned(NamedTuple):
    """A workload that has a plan, or had one: known by one of its pods."""

    workload: str
    group_by: str


class _Unplanned(NamedTuple):
    """A pod whose cost nobody needs any more."""

    pod: str


_ALL: Final = _Planned("", "")  # the key that stands for all pods


@dataclass(frozen=True, slots=True)
class _SizedNode:
    """What costs depend on of a virtual node."""

    name: str
    labels: Mapping[str, str]
    cpu: int | None
    """Full ones; None as long as its target has not said."""

    @classmethod
    def of(cls, node: Object) -> _SizedNode:
        """Return what costs depend on of a Node."""
        allocatable = objects.status(node).get("allocatable")
        cpu: int | None = None
        if allocatable:
            cpu = math.ceil(resources.parse(allocatable).get(resources.CPU, 0) / 1000)

        return cls(objects.name(node), objects.labels(node), cpu)


class DeletionCosts:
    """Runs in the leader."""

    def __init__(
        self,
        client: Client,
        proxies: Informer,
        nodes: Informer,
        cache: Cache,
        policies: Policies,
        index: WorkloadIndex,
        clock: Clock,
    ) -> None:
        self._client = client
        self._proxies = proxies
        self._nodes = nodes
        self._cache = cache
        self._policies = policies
        self._index = index
        self._clock = clock
        self._writes = TokenBucket(RATE, BURST)
        # One write of each namespace waits for its turn: so each gets the same share of the rate.
        self._controller: Controller[_Planned | _Unplanned] = Controller(
            "deletion-costs",
            self._reconcile,
            subject=audit.agent,
            workers=1,
            lane=_namespace_of,
            namespace=_namespace_of,
        )
        # A pod of each workload that waits to be reconciled.
        self._samples: dict[_Planned, Object] = {}
        self._expectations = Expectations(self._enqueue)

    async def run(self) -> None:
        """Write costs until cancelled, once all pods are known."""
        await self._proxies.synced.wait()
        self._proxies.subscribe(self._on_pod)
        self._index.subscribe(self._check)
        self._nodes.subscribe(self._on_node)
        await self._controller.run()

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        pod = objects.latest(old, new)
        if old is not None and new is not None and _concerns(old) == _concerns(new):
            return

        if self._policies or keys.DELETION_COST in objects.annotations(pod):
            self._check(pod)

    def _on_node(self, old: Object | None, new: Object | None) -> None:
        before, after = (_SizedNode.of(node) if node else None for node in (old, new))
        if self._policies and before != after:
            self._controller.add_after(_ALL, _SETTLED)

    def _enqueue(self, key: str) -> None:
        if pod := self._proxies.store.get(key):
            self._on_pod(None, pod)

    def _check(self, pod: Object) -> None:
        owner = objects.controller_reference(pod) or {}
        policy = self._policies.of(pod) if owner.get("kind") == "ReplicaSet" else None
        if policy is not None and policy.is_divided:
            workload = _Planned(workload_of(pod, policy.group_by), policy.group_by)
            if workload not in self._samples:
                self._samples[workload] = pod
                self._controller.add_after(workload, _SETTLED)
        elif is_ours(pod):
            self._controller.add_after(_Unplanned(objects.key(pod)), _SETTLED)

    async def _check_all(self) -> None:
        """Look at all pods that have a policy, which may be thousands."""
        async for pod in in_slices(self._index.planned(), self._clock):
            self._check(pod)

    async def _reconcile(self, key: _Planned | _Unplanned) -> float | None:
        if key == _ALL:
            await self._check_all()
            return None

        if isinstance(key, _Unplanned):
            await self._remove(key)
            return None

        sample = self._samples.pop(key, None)
        policy = self._policies.of(sample) if sample is not None else None
        if sample is None or policy is None or not policy.is_divided:
            return None

        await self._cache.workloads.count(sample, policy.group_by, self._clock)
        finished = False
        try:
            finished = await self._write_batch(self._wanted(sample, policy))
        finally:
            if not finished:
                self._samples.setdefault(key, sample)

        return None if finished else 0.0

    async def _write_batch(self, wanted: Iterable[tuple[Object, int]]) -> bool:
        """Write costs; return False if some are left for the next time."""
        written = 0
        for pod, cost in wanted:
            if written == _BATCH:
                return False

            if not self._expectations.pending(objects.key(pod), pod):
                await self._write(pod, str(cost))
                written += 1

        return True

    def _wanted(self, sample: Object, policy: Policy) -> list[tuple[Object, int]]:
        """Return the pods of a workload that need another cost, those to stay longest first."""
        workload = self._cache.workloads.of(sample, policy.group_by)
        placed = {uid: member for uid, member in workload.members.items() if member.node}
        nodes = [_SizedNode.of(node) for node in self._nodes.store.values()]
        shares = policy.shares(nodes, _sizes(nodes) if policy.by_capacity else None)
        costs = deletion_cost.costs(
            (
                PlacedPod(
                    uid,
                    member.node,
                    member.revision,
                    objects.created(member.pod),
                    _written(member.pod),
                )
                for uid, member in placed.items()
            ),
            workload.seats(shares),
        )
        pods = ((placed[uid].pod, cost) for uid, cost in costs.items())
        differing = [(pod, cost) for pod, cost in pods if needs(pod, cost)]
        return sorted(differing, key=lambda entry: -entry[1])

    async def _remove(self, key: _Unplanned) -> None:
        pod = self._proxies.store.get(key.pod)
        if pod is None or not is_ours(pod) or self._expectations.pending(key.pod, pod):
            return

        policy = self._policies.of(pod)
        if policy is None or not policy.is_divided:
            await self._write(pod, None)

    async def _write(self, pod: Object, cost: str | None) -> None:
        """Write the cost when it is its turn, or remove it; a pod that is gone is none."""
        if wait := self._writes.reserve(self._clock.monotonic()):
            await self._clock.sleep(wait)

        annotations = {keys.POD_DELETION_COST: cost, keys.DELETION_COST: cost}
        body = {"metadata": {"uid": objects.uid(pod), "annotations": annotations}}
        with audit.on_behalf_of(audit.of(kinds.PODS, pod)):
            await self._expectations.patch(self._client, kinds.PODS, pod, body)


def _namespace_of(key: _Planned | _Unplanned) -> str:
    if isinstance(key, _Unplanned):
        return objects.split_key(key.pod)[0]

    return namespace_of(key.workload)


def _concerns(pod: Object) -> tuple[object, ...]:
    """Return what costs depend on."""
    annotations = objects.annotations(pod)
    return (
        objects.node_name(pod),
        objects.is_terminating(pod),
        objects.is_finished(pod),
        objects.labels(pod),
        annotations.get(keys.POD_DELETION_COST),
        annotations.get(keys.DELETION_COST),
    )


def is_ours(pod: Object) -> bool:
    """Tell whether we have set the pod's cost, and nobody has changed it since."""
    annotations = objects.annotations(pod)
    ours = annotations.get(keys.DELETION_COST)
    return ours is not None and annotations.get(keys.POD_DELETION_COST, ours) == ours


def _written(pod: Object) -> int:
    """Return the cost that we have set; 0 if we have set none, or somebody has changed it since."""
    ours = objects.annotations(pod).get(keys.DELETION_COST, "")
    return (numbers.natural(ours) or 0) if is_ours(pod) else 0


def needs(pod: Object, cost: int) -> bool:
    """Tell whether that cost must be written: it is another one, and not the user's own."""
    present = objects.annotations(pod).get(keys.POD_DELETION_COST)
    return present is None or (is_ours(pod) and present != str(cost))


def _sizes(nodes: Iterable[_SizedNode]) -> dict[str, int]:
    """Weigh clusters by their CPUs: unlike what is free, these change rarely.

    A Node keeps them while its target does not answer, also when the agent starts anew.
    """
    sizes = {node.name: min(MAX_WEIGHT, node.cpu) for node in nodes if node.cpu is not None}
    usual = _mean(sizes.values())
    return {node.name: sizes.get(node.name, usual) for node in nodes}


def _mean(sizes: Iterable[int]) -> int:
    known = tuple(sizes)
    return max(1, sum(known) // len(known)) if known else 1
