"""Evicts pods by the Eviction API, one or all of a workload, and watches over the budgets."""

from __future__ import annotations

from collections.abc import Iterable

from tests.faults.plan import WantedWorkload
from tests.faults.snapshot import APP, Violation, phase
from tests.faults.workloads import BUDGETS
from vnode.api import kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.kube.client import Client

NAMESPACE = "default"
EVICTIONS = Kind("policy", "v1", "evictions", "Eviction")


async def evict(client: Client, pod: Object) -> None:
    """Evict a pod; raise TooManyRequests if a budget forbids it."""
    eviction = {
        "apiVersion": EVICTIONS.api_version,
        "kind": EVICTIONS.kind,
        "metadata": {"name": objects.name(pod), "namespace": NAMESPACE},
        "deleteOptions": {"preconditions": {"uid": objects.uid(pod)}},
    }
    await client.create(
        kinds.PODS, eviction, NAMESPACE, name=objects.name(pod), subresource="eviction"
    )


async def evict_within_budget(
    source: Client, workload: WantedWorkload, pod: Object
) -> list[Violation]:
    """Evict a proxy pod; return the violation if its workload's budget had to be against it.

    Pods are counted before and after, to see whether others changed meanwhile.
    """
    if not workload.budget:
        await evict(source, pod)
        return []

    budget = await source.get(BUDGETS, workload.name, NAMESPACE)
    before = await _pods(source, workload)
    await evict(source, pod)
    after = await _pods(source, workload)
    return list(overdrawn(workload, budget, pod, before, after))


def overdrawn(
    workload: WantedWorkload,
    budget: Object,
    pod: Object,
    before: Iterable[Object],
    after: Iterable[Object],
) -> Iterable[Violation]:
    """Tell what the granted eviction of a pod broke; those of its workload were `before`.

    A pod that was no longer available then is left out: the API server asks no budget about one
    that is terminating, pending or finished. Nor is it judged what the API server grants while the
    budget still counts pods that have just ended, all those of a virtual node for instance: it
    believes the budget's status, which a controller writes a moment later. While others become
    available, or cease to be, nobody knows what it believed.
    """
    available, left = _available(before), _available(after)
    evicted, least = objects.uid(pod), workload.replicas - 1
    if objects.status(budget).get("currentHealthy", 0) > len(available):
        return

    if available - left == {evicted} and left < available and len(available) <= least:
        text = f"{len(available)} of {workload.replicas} pods of {workload.name} were available"
        yield Violation("budgets of the source hold", f"{text}, and one was evicted")


def _available(pods: Iterable[Object]) -> set[str]:
    return {objects.uid(each) for each in pods if is_available(each)}


def is_available(pod: Object) -> bool:
    """Tell whether a pod runs, is Ready, and is not about to end."""
    ready = objects.condition(pod, "Ready") or {}
    return (
        phase(pod) == "Running"
        and ready.get("status") == "True"
        and not objects.is_terminating(pod)
    )


async def _pods(source: Client, workload: WantedWorkload) -> list[Object]:
    return await source.list(kinds.PODS, NAMESPACE, label_selector=f"{APP}={workload.name}")
