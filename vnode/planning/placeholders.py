"""Decides where pods that overflowed keep placeholders: candidates that wait on for room. Pure.

A placeholder is in a better cluster than the one where its pod runs: where the pod was planned, or
in a higher tier. It is wanted while the plan has a gap there that such a pod would fill, and while
the pod's own cluster has more pods than planned, so that one of them is out of place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from vnode.api import objects
from vnode.planning import plan
from vnode.planning.cluster_choice import ClusterChoice
from vnode.planning.policy import Policy
from vnode.planning.seats import Share
from vnode.planning.workload import Workload
from vnode.planning.workload_pod import WorkloadPod


def keeps(policy: Policy | None) -> bool:
    """Tell whether pods of that policy leave placeholders."""
    return policy is not None and policy.is_divided and policy.overflow.keep_unschedulable


def better(choice: ClusterChoice, shares: Mapping[str, Share]) -> dict[str, tuple[str, ...]]:
    """Return for each node by overflow the nodes that are better, of those where the pod waits."""
    if choice.is_surge:  # the next pods of its revision take its place, once old ones are gone
        return {}

    opened = [node for node, _ in choice.opened]
    found = {}
    for winner in opened:
        higher = (n for n in opened if shares[n].tier > shares[winner].tier)
        found[winner] = (choice.aim, *higher)

    return found


def wanted(
    workload: Workload,
    shares: tuple[Share, ...],
    *,
    closed: Collection[str] = (),
    is_planned: bool = True,
) -> dict[str, tuple[str, ...]]:
    """Return the nodes where each pod is to keep its placeholders, by UID of those that have any.

    `shares` are those of all clusters of the policy, and `closed` those of them where no pod is to
    begin. Without `is_planned` the weights are unknown, and with them the plan.
    """
    account = _Account(workload, shares, closed, is_planned)
    having = [member for member in workload.members.values() if member.placeholders]
    return {member.uid: account.take(member) for member in sorted(having, key=account.order)}


@dataclass(slots=True)
class _Room:
    """What one cluster lacks by the plan, and how many more it may have at most."""

    gap: float
    most: float


class _Account:
    """Hands out the gaps of a plan to placeholders, those of the worst clusters first."""

    def __init__(
        self,
        workload: Workload,
        shares: tuple[Share, ...],
        closed: Collection[str],
        is_planned: bool,
    ) -> None:
        self._shares = {share.node: share for share in shares}
        made = plan.of_revisions(workload.seats(shares), workload.revisions)
        # Pods that no cycle has looked at yet: they may be planned wherever there seems to be one
        # too few.
        new = sum(1 for m in workload.pending() if not m.aim and m.since is None)
        self._surplus = {
            node: new - made.gap(node) if is_planned else math.inf for node in self._shares
        }
        self._rooms = {
            share.node: _Room(
                made.gap(share.node) if is_planned else math.inf,
                math.inf
                if share.maximum is None
                else share.maximum - made.counted.get(share.node, 0),
            )
            for share in shares
            if share.node not in closed
        }

    def order(self, member: WorkloadPod) -> tuple[float, str, str]:
        """Sort pods of the worst cluster first, and the oldest of a cluster last.

        The first to come there are those that the plan has there.
        """
        share = self._shares.get(member.node)
        created = objects.created(member.pod)
        return (-math.inf if share is None else share.tier), _descending(created), member.uid

    def take(self, member: WorkloadPod) -> tuple[str, ...]:
        """Return the nodes where a pod keeps its placeholders; they are taken then."""
        own = self._shares.get(member.node)
        if own is None or self._surplus[own.node] <= 0:
            return ()

        taken = tuple(node for node in member.placeholders if self._has_use(node, own))
        for node in taken:
            self._rooms[node].gap -= 1
            self._rooms[node].most -= 1

        self._surplus[own.node] -= bool(taken)
        return taken

    def _has_use(self, node: str, own: Share) -> bool:
        room = self._rooms.get(node)
        if room is None or node == own.node or room.most <= 0:
            return False

        share = self._shares[node]
        if share.tier > own.tier and share.weight > 0:
            return True

        return room.gap > 0 and (share.tier == own.tier or room.gap < math.inf)


def _descending(text: str) -> str:
    """Return a text that sorts the other way round; of timestamps."""
    return "".join(chr(0x10FFFF - ord(character)) for character in text)
