"""Compares what each cluster has of a workload with what it is to have, for status and for people.

What it is to have depends on the policy, the virtual nodes and the number of replicas alone
(`vnode.planning.seats`), so the agent and `vnode plan` come to the same numbers as the
scheduler. Pure.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.placement.status.counting import WorkloadTally
from vnode.planning import choosing, plan, policy_node
from vnode.planning.policy import Policy
from vnode.planning.policy_node import PlannedNode
from vnode.planning.seats import Plan, Seats

MOST_WORKLOADS: Final = 50
"""Workloads in a status; of others there is only the number."""
MOST_TARGETS: Final = 1000
"""Entries for clusters in a status, in all workloads together."""


@dataclass(frozen=True, slots=True)
class ClusterAccount:
    """One cluster's part of a workload."""

    cluster: str
    """The virtual node."""
    planned: int | None
    """None where there is no plan."""
    running: int
    waiting: int
    placeholders: int = 0
    """Pods that run elsewhere, and wait here for room."""
    closed_until: datetime | None = None
    """No pod of the workload is moved here before, since one was in vain."""

    @property
    def difference(self) -> int | None:
        """How many more are planned than are there; negative for too many."""
        return None if self.planned is None else self.planned - self.running - self.waiting


@dataclass(frozen=True, slots=True)
class WorkloadAccount:
    """A workload, and the clusters that have a part of it or are to have one."""

    workload: str
    replicas: int
    targets: tuple[ClusterAccount, ...]
    unplaced: int = 0


def account(
    policy: Policy,
    workload: str,
    tally: WorkloadTally,
    nodes: Iterable[PlannedNode],
    *,
    candidates: Mapping[str, int] | None = None,
    weights: Mapping[str, int] | None = None,
    closed: Mapping[str, datetime] | None = None,
) -> WorkloadAccount:
    """Return the account of a workload.

    `candidates` has how many of its pods that are not bound wait in which cluster, `weights` what
    each cluster weighs for a policy without weights, where that is known: else it has no plan.
    `closed` has the clusters to which none of them is moved before that moment.
    """
    waiting = tally.starting + Counter(candidates or {})
    there = tally.running + waiting
    made = _plan(policy, workload, tally, policy_node.covering(nodes, tally.namespace), weights)
    planned, closed = {} if made is None else made.planned, closed or {}
    known = planned.keys() | there.keys() | tally.placeholders.keys() | closed.keys()
    return WorkloadAccount(
        workload,
        tally.replicas,
        tuple(
            ClusterAccount(
                name,
                None if made is None else planned.get(name, 0),
                tally.running[name],
                waiting[name],
                tally.placeholders[name],
                closed.get(name),
            )
            for name in sorted(known)
        ),
        0 if made is None else made.unplaced,
    )


def _plan(
    policy: Policy,
    workload: str,
    tally: WorkloadTally,
    nodes: list[PlannedNode],
    weights: Mapping[str, int] | None,
) -> Plan | None:
    """Plan as scheduling does: pods on clusters that take no more keep their places."""
    if not policy.has_plan or (policy.by_capacity and weights is None):
        return None

    bound = tally.running + tally.starting
    shares = policy.shares(nodes, weights)
    if policy.is_together:
        fits = {s.node for s in shares if s.maximum is None or s.maximum >= tally.replicas}
        home = choosing.most({node: count for node, count in bound.items() if node in fits})
        return Plan({home: tally.replicas}) if home else None

    takes_pods = {node.name for node in nodes if node.takes_pods}
    closed = {s.node: bound[s.node] for s in shares if s.node not in takes_pods and bound[s.node]}
    seats = Seats((share for share in shares if share.node in takes_pods), workload)
    made = plan.of_revisions(seats, tally.by_revision())
    return Plan({**made.planned, **closed}, made.unplaced)


def largest(tallies: Mapping[str, WorkloadTally]) -> list[tuple[str, WorkloadTally]]:
    """Return the workloads that a status has, the largest first."""
    return heapq.nsmallest(MOST_WORKLOADS, tallies.items(), lambda e: (-e[1].replicas, e[0]))


def status(tallies: Mapping[str, WorkloadTally], accounts: Iterable[WorkloadAccount]) -> Object:
    """Build the status of a policy but for its conditions."""
    room, workloads = MOST_TARGETS, []
    for each in accounts:
        targets = [_entry(target) for target in each.targets[:room]]
        room -= len(targets)
        entry: Object = {"workload": each.workload, "replicas": each.replicas, "targets": targets}
        workloads.append(entry | ({"unplaced": each.unplaced} if each.unplaced else {}))

    return {
        "workloadCount": len(tallies),
        "replicas": sum(tally.replicas for tally in tallies.values()),
        "workloads": workloads,
    }


def _entry(target: ClusterAccount) -> Object:
    entry: Object = {
        "cluster": target.cluster,
        "running": target.running,
        "waiting": target.waiting,
    }
    if target.planned is not None:
        entry["planned"] = target.planned

    if target.placeholders:
        entry["placeholders"] = target.placeholders

    if target.closed_until is not None:
        entry["noMovesUntil"] = objects.timestamp(target.closed_until)

    return entry
