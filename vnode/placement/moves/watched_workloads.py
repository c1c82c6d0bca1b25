"""Keeps the workloads of which pods may have to be moved, each until there is nothing left to do.

A workload is kept if its policy drains clusters, a pod of it overflowed, it was being moved as a
whole, or somebody asks for it. All others cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.placement.moves import workload_state
from vnode.placement.moves.demands import MoveDemands, PlannedWorkload
from vnode.placement.moves.mover import MovingPolicies
from vnode.placement.moves.room_tracker import OtherMoves
from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.placement.policies.judging import ACCEPTED
from vnode.placement.workload_index import WorkloadIndex
from vnode.planning.move_policy import FailbackMode
from vnode.planning.policy import Mode, Policy
from vnode.planning.unfinished_move import moved_for
from vnode.planning.workload_key import workload_of

_MOVABLE: Final = frozenset({Mode.SPREAD, Mode.FILL, Mode.SINGLE})


def key_of_workload(pod: Object, policy: Policy | None) -> PlannedWorkload | None:
    """Return the workload of a pod, None if its policy moves nothing."""
    if policy is None or policy.mode not in _MOVABLE:
        return None

    return PlannedWorkload(workload_of(pod, policy.group_by), policy.group_by)


def concerns(pod: Object) -> tuple[object, ...]:
    """Return what moves depend on."""
    return (
        objects.node_name(pod),
        objects.is_terminating(pod),
        objects.is_finished(pod),
        objects.labels(pod),
        workload_state.is_ready(pod),
    )


class WatchedWorkloads:
    """The workloads that are looked at, by their keys."""

    def __init__(
        self, index: WorkloadIndex, policies: MovingPolicies, demands: MoveDemands
    ) -> None:
        self._index = index
        self._policies = policies
        self._demands = demands
        self._workloads: dict[PlannedWorkload, WorkloadMoves] = {}

    def get(self, key: PlannedWorkload) -> tuple[WorkloadMoves, Policy] | None:
        """Return what is kept of a workload, and its policy; None if it is not to be moved."""
        moves = self._workloads.get(key)
        policy = self._policies.of(moves.sample) if moves is not None and moves.sample else None
        if moves is None or policy is None or policy.mode not in _MOVABLE:
            return None

        return moves, policy

    def of(self, workload: str) -> list[PlannedWorkload]:
        """Return the keys of a workload: several if policies divide its pods in several ways."""
        return [key for key in self._workloads if key.workload == workload]

    def items(self) -> Iterator[tuple[PlannedWorkload, WorkloadMoves]]:
        """Iterate over all of them."""
        return iter(self._workloads.items())

    def pop(self, key: PlannedWorkload) -> bool:
        """Drop a workload; tell whether it was kept."""
        return self._workloads.pop(key, None) is not None

    def find(self, pod: Object) -> PlannedWorkload | None:
        """Return the workload of a pod, which is kept from now on; None if it is not to be."""
        policy = self._policies.of(pod)
        key = key_of_workload(pod, policy)
        if policy is None or key is None:
            return None

        moves = self._workloads.get(key)
        if moves is None:
            is_due = policy.drains or _fails_back(policy, pod) or _was_moved(policy, pod)
            if not (is_due or self._demands.concerns(key)):
                return None

            moves = self._workloads[key] = WorkloadMoves()

        if not objects.is_terminating(pod):
            moves.sample = pod

        return key

    def others(self, moves: WorkloadMoves, now: float) -> OtherMoves:
        """Return the moves of all other workloads."""
        going, targets = Counter[str](), set[str]()
        for other in self._workloads.values():
            if other is not moves:
                going += other.under_way.taken(now)
                targets |= other.under_way.targets(now)

        return OtherMoves(going, frozenset(targets))

    def planned(self, namespace: str) -> dict[PlannedWorkload, str]:
        """Return the workloads of a namespace that have a plan, and the policies that plan them."""
        found = {}
        for pod in self._index.pods_in(namespace):
            policy = self._policies.of(pod)
            key = key_of_workload(pod, policy)
            if policy is not None and key is not None:
                found[key] = policy.name

        return found

    def problem_of_policy(self, namespace: str, name: str) -> str:
        """Return why a PlacementPolicy plans nothing; "" if it does."""
        shown, key = f"placementpolicy/{name}", objects.join_key(namespace, name)
        obj, policy = self._policies.get(key), self._policies.in_force().get(key)
        if obj is None:
            return f"{shown} not found"

        if policy is None:
            why = (objects.condition(obj, ACCEPTED) or {}).get("message") or "see its conditions"
            return f"{shown} is not in force: {why}"

        if policy.mode not in _MOVABLE:
            return f"{shown} has no plan, as its mode is {policy.mode.value}"

        return "" if shown in self.planned(namespace).values() else f"{shown} applies to no pods"

    def problem_of(self, namespace: str, workload: str, policy: str) -> str:
        """Return why a workload has no plan by a PlacementPolicy, or by any if none is named."""
        pods = self._index.pods_in(namespace)
        if not any(workload_of(pod, "") == workload for pod in pods):
            return f"pods of {workload} not found"

        by = f"placementpolicy/{policy}" if policy else "a policy of mode Spread, Fill or Single"
        return f"{workload} has no plan: {by} does not apply to its pods"


def _fails_back(policy: Policy, pod: Object) -> bool:
    """Tell whether the pod is to go back, once there is room."""
    is_wanted = policy.failback.mode is not FailbackMode.NEVER
    return is_wanted and workload_state.has_overflowed(pod)


def _was_moved(policy: Policy, pod: Object) -> bool:
    """Tell whether the pod's workload may be on its way as a whole."""
    return policy.mode is Mode.SINGLE and moved_for(pod) is not None
