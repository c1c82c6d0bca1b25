"""Decides what a placement policy says of each node for one pod, and puts it into words.

`PlacementPolicy` makes a verdict in PreFilter; all its other extension points read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from vnode.api import objects
from vnode.planning import reasons
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.policy import Policy
from vnode.planning.seats import Share
from vnode.planning.workload import Workload
from vnode.planning.workload_pod import WorkloadPod
from vnode.scheduling import status
from vnode.scheduling.snapshot import Snapshot
from vnode.scheduling.status import SUCCESS, Status


@dataclass(frozen=True, slots=True)
class PlacementVerdict:
    """What PreFilter found out for one pod."""

    policy: Policy
    workload: Workload
    member: WorkloadPod
    shares: Mapping[str, Share]
    home: str | None
    """Mode Single: the only node; "" if any will do, None if none will as yet."""
    choice: ClusterChoice | None
    """Modes with a plan: where the pod may go."""
    aim: str
    """What messages call the planned cluster."""
    waits: str
    """For messages: `; waiting for c1 until 2026-01-01T00:02:00Z`; of Single ` in c1`."""

    def of(self, node: str) -> Status:
        """Return the verdict on a node."""
        share, name = self.shares.get(node), self.policy.name
        if share is None:
            return status.unresolvable(f"didn't match {name}")

        if self.choice is not None and node in self.choice.nodes():
            return SUCCESS

        if share.maximum is not None and self._others(node) >= share.maximum:
            return status.unschedulable(f"at its maximum of {share.maximum} by {name}{self.waits}")

        if self.home is None or (self.home and node != self.home):
            return status.unschedulable(
                f"{name} keeps the pods of {self.workload.key} together{self.waits}"
            )

        return SUCCESS if self.choice is None else self._elsewhere(share, self.choice)

    def _others(self, node: str) -> int:
        """Return how many other pods count there; of those that are kept together all do."""
        if self.policy.is_together:
            return len(self.workload.members.keys() - {self.member.uid})

        return self.workload.others(self.member, node)

    def reason(self, node: str) -> str:
        """Return why the pod has its place on the node."""
        share, policy = self.shares.get(node), self.policy
        if share is None:
            return ""

        if self.choice is not None:
            return reasons.planned(policy, share, self.choice, self.aim)

        if policy.is_together:
            return reasons.together(policy, self.workload.key, is_first=not self.home)

        return reasons.scored(policy)

    def _elsewhere(self, share: Share, choice: ClusterChoice) -> Status:
        count = choice.planned.get(share.node, 0)
        by = reasons.by_weight(self.policy, share)
        return status.unschedulable(
            f"planned elsewhere by {self.policy.name}: {count} of {choice.replicas} here"
            f"{',' if by else ''}{by}{self.waits}"
        )


def waiting(choice: ClusterChoice, snapshot: Snapshot) -> str:
    """Tell in words what a pod that is not bound yet waits for."""
    names = [snapshot.target_name(node) for node in choice.nodes()]
    if not names:
        return ""

    until = ""
    if choice.until is not None:
        until = f" until {objects.timestamp(datetime.fromtimestamp(choice.until, UTC))}"

    return f"; waiting for {', '.join(names)}{until}"
