"""Why pods that run are moved: the four reasons, each with all in which it differs. Pure.

Whoever moves pods asks the reason, and never which one it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final

from vnode.planning.move_policy import FailbackMode
from vnode.planning.move_state import Replica, WorkloadState
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PolicyNode
from vnode.planning.workload import Workload

SETTLED: Final = 1.0
"""Seconds in which changes are awaited, to be looked at together."""
_LOOKS: Final = 20  # at what clusters have free, at most, in the time of a stabilization


class MoveReason:
    """A reason to move pods to where they are planned; the four forms override what differs."""

    value: ClassVar[str]
    """For people: in Events, metrics, and on pods that are moved together."""
    climbs: ClassVar[bool] = False
    """Whether pods go up to better clusters though the plan has no gap there."""
    moves_jobs: ClassVar[bool] = False
    """Whether pods of Jobs are moved, too. They begin their work anew: somebody has to ask."""
    needs_lasting_room: ClassVar[bool] = False
    """Whether room counts only once there has been some for long enough."""
    is_told: ClassVar[bool] = False
    """Whether the policy is told by an Event why pods stay that are to be moved."""

    def is_wanted(self, policy: Policy) -> bool:
        """Tell whether a policy moves pods for it at any time; else somebody has to ask."""
        return False

    def may_move(self, workload: Workload, policy: Policy, nodes: Iterable[PolicyNode]) -> bool:
        """Tell whether there may be pods to move, before the clusters are looked at closely.

        There may be while the workload goes to a destination.
        """
        return bool(workload.destination) or self._has_movable(workload, policy, nodes)

    def _has_movable(self, workload: Workload, policy: Policy, nodes: Iterable[PolicyNode]) -> bool:
        """Tell whether pods may be where they are not to stay."""
        return bool(workload.bound)

    def settling(self, policy: Policy) -> float:
        """Return for how long changes of clusters are awaited, to be looked at together."""
        return SETTLED

    def concerns(self, replica: Replica, now: WorkloadState, able: Collection[str]) -> bool:
        """Tell whether a pod may be moved; `able` are the clusters that can take such pods."""
        # A cluster of the policy that takes no pods now keeps those that it has.
        return replica.node in able or replica.node not in now.included

    def keeps(self, node: str, planned: Mapping[str, int], caps: Mapping[str, int]) -> int:
        """Return how many pods a cluster keeps, by the plan and the drains."""
        return planned.get(node, 0)

    def may_stay(self, now: WorkloadState, there: Mapping[str, int]) -> bool:
        """Tell whether a workload that is kept together stays; `there` counts those bound."""
        is_waiting = any(replica.waiting for replica in now.replicas)
        return not there or (len(there) == 1 and now.included >= there.keys() and not is_waiting)


class Draining(MoveReason):
    """Clusters are to have fewer pods."""

    value = "drain"
    is_told = True
    moves_jobs = True

    def is_wanted(self, policy: Policy) -> bool:
        """Tell whether the policy drains clusters."""
        return bool(policy.drains)

    def _has_movable(self, workload: Workload, policy: Policy, nodes: Iterable[PolicyNode]) -> bool:
        """Tell whether a cluster has more than may stay.

        A workload that is kept together leaves a cluster whole that may not have all of its pods,
        those to come included.
        """
        whole = len(workload.members) if policy.is_together else 0
        return any(
            max(workload.bound[node.name], whole) > cap
            for node in nodes
            if workload.bound[node.name] and (cap := policy.drained_to(node)) is not None
        )

    def concerns(self, replica: Replica, now: WorkloadState, able: Collection[str]) -> bool:
        """Tell whether the pod is in a cluster that is drained."""
        return replica.node in now.caps

    def keeps(self, node: str, planned: Mapping[str, int], caps: Mapping[str, int]) -> int:
        """Return what the drain leaves the cluster."""
        return caps[node]

    def may_stay(self, now: WorkloadState, there: Mapping[str, int]) -> bool:
        """Tell whether no cluster is drained of it."""
        return not any(cap < now.total and there.get(node) for node, cap in now.caps.items())


class Rebalancing(MoveReason):
    """Somebody asks for it, by a Rebalance."""

    value = "rebalance"
    moves_jobs = True


class Rescheduling(MoveReason):
    """The plan has changed."""

    value = "reschedule"
    is_told = True


class FailingBack(MoveReason):
    """Pods that overflowed go back. This may take days, and nobody is told that they wait."""

    value = "failback"
    climbs = True
    needs_lasting_room = True

    def is_wanted(self, policy: Policy) -> bool:
        """Tell whether pods go back once there is room; those kept together are moved whole."""
        return policy.failback.mode is not FailbackMode.NEVER and not policy.is_together

    def _has_movable(self, workload: Workload, policy: Policy, nodes: Iterable[PolicyNode]) -> bool:
        """Tell whether a pod has overflowed."""
        return any(m.facts().overflowed for m in workload.members.values() if m.node)

    def settling(self, policy: Policy) -> float:
        """Return a part of the time for which there must have been room.

        What targets have free changes all the time, and pods may wait to go back for days.
        """
        return max(SETTLED, policy.failback.stable_after(is_asked=False) / _LOOKS)

    def concerns(self, replica: Replica, now: WorkloadState, able: Collection[str]) -> bool:
        """Tell whether the pod overflowed to a cluster of the policy."""
        return replica.overflowed and replica.node in able


DRAIN: Final = Draining()
REBALANCE: Final = Rebalancing()
RESCHEDULE: Final = Rescheduling()
FAILBACK: Final = FailingBack()
REASONS: Final[tuple[MoveReason, ...]] = (DRAIN, REBALANCE, RESCHEDULE, FAILBACK)
"""All of them: what comes first is done first."""
