"""Finds the workloads of a namespace that have a plan, and says what is wrong with others.

A namespace may have thousands of pods, so that they are looked at in slices.
"""

from __future__ import annotations

from collections.abc import Collection

from vnode.api import objects
from vnode.api.clock import Clock
from vnode.api.slices import in_slices
from vnode.placement.moves.demands import MovingPolicies
from vnode.placement.policies.judging import ACCEPTED
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning.workload_key import PlannedWorkload, planned_workload_of, workload_of


class PlannedWorkloads:
    """The workloads that have a plan, of which somebody may ask something."""

    def __init__(self, index: WorkloadIndex, policies: MovingPolicies, clock: Clock) -> None:
        self._index = index
        self._policies = policies
        self._clock = clock

    async def of(self, namespace: str) -> dict[PlannedWorkload, str]:
        """Return the workloads of a namespace that have a plan, and the policies that plan them."""
        found = {}
        async for pod in in_slices(self._index.pods_in(namespace), self._clock):
            policy = self._policies.of(pod)
            key = planned_workload_of(pod, policy)
            if policy is not None and key is not None:
                found[key] = policy.name

        return found

    async def problems(self, namespace: str, policy: str, workloads: Collection[str]) -> list[str]:
        """Return why nothing can be moved of a PlacementPolicy (if one is named) or workloads."""
        problem = await self._problem_of_policy(namespace, policy) if policy else ""
        if problem:
            return [problem]

        there = set[str]()
        async for pod in in_slices(self._index.pods_in(namespace), self._clock):
            there.add(workload_of(pod, ""))

        by = f"placementpolicy/{policy}" if policy else "a policy of mode Spread, Fill or Single"
        return [
            f"{each} has no plan: {by} does not apply to its pods"
            if each in there
            else f"pods of {each} not found"
            for each in workloads
        ]

    async def _problem_of_policy(self, namespace: str, name: str) -> str:
        """Return why a PlacementPolicy plans nothing; "" if it does."""
        shown, key = f"placementpolicy/{name}", objects.join_key(namespace, name)
        obj, policy = self._policies.get(key), self._policies.in_force().get(key)
        if obj is None:
            return f"{shown} not found"

        if policy is None:
            why = (objects.condition(obj, ACCEPTED) or {}).get("message") or "see its conditions"
            return f"{shown} is not in force: {why}"

        if not policy.has_plan:
            return f"{shown} has no plan, as its mode is {policy.mode.value}"

        planning = (await self.of(namespace)).values()
        return "" if shown in planning else f"{shown} applies to no pods"
