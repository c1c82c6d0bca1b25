"""Plans a workload from its counts: what each cluster is to have, and what it lacks. Pure.

Whoever needs to know asks here, with what is counted: scheduling and placeholders the scheduler's
counts, the status and `vnode plan` those of a policy. So what one of them calls a gap, another one
fills. Pods that are bound to clusters without seats keep their places and are not planned: they are
drained, cordoned or none of the policy's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vnode.planning import revisions
from vnode.planning.revisions import Revision, RevisionCounts
from vnode.planning.seats import Plan, Seats


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """What each cluster is to have of some pods of a workload, and has."""

    planned: Mapping[str, int]
    """Node -> pods, without zeroes; do not change."""
    unplaced: int
    """Pods that the maximums leave over."""
    replicas: int
    """The pods that are planned."""
    counted: Mapping[str, int]
    """Node -> pods that are there, or have it as their aim; do not change."""

    def gap(self, node: str) -> int:
        """Return how many more a cluster is to have; negative for too many."""
        return self.planned.get(node, 0) - self.counted.get(node, 0)


def of_revisions(seats: Seats, counts: Mapping[Revision, RevisionCounts]) -> WorkloadPlan:
    """Return the plan of a whole workload, that of its revisions together."""
    nodes = {share.node for share in seats.ranked}
    sizes = {key: max(0, each.pods - each.elsewhere(nodes)) for key, each in counts.items()}
    if revisions.have_superseded(counts):
        made = _of_rollout(seats, counts, sizes)
    else:
        made = seats.plan(sum(sizes.values()))

    return WorkloadPlan(made.planned, made.unplaced, sum(sizes.values()), _counted(counts.values()))


def of_peers(seats: Seats, peers: RevisionCounts, more: int = 0) -> WorkloadPlan:
    """Return the plan of pods that are planned together, and of so many more."""
    replicas = peers.pods + more - peers.elsewhere({share.node for share in seats.ranked})
    made = seats.plan(replicas)
    return WorkloadPlan(made.planned, made.unplaced, replicas, _counted((peers,)))


def _of_rollout(
    seats: Seats, counts: Mapping[Revision, RevisionCounts], sizes: Mapping[Revision, int]
) -> Plan:
    """Return the plan of the newest revisions, and what each older one has beside it."""
    latest = {revision: each.latest for revision, each in counts.items()}
    current = revisions.current(latest)
    newest = frozenset(current.values())
    of_newest = sum(sizes[revision] for revision in newest)
    whole = seats.plan(of_newest)
    found, unplaced = Counter(whole.planned), whole.unplaced
    for revision in counts.keys() - newest:  # there may be thousands, each with its own peers
        number = of_newest - sizes[current[revision.maker]] + sizes[revision]
        more, less = seats.plan(number), seats.plan(number - sizes[revision])
        found.update(more.planned)
        found.subtract(less.planned)
        unplaced += more.unplaced - less.unplaced

    return Plan(+found, unplaced)


def _counted(counts: Iterable[RevisionCounts]) -> Counter[str]:
    found = Counter[str]()
    for each in counts:
        found.update(each.bound)
        found.update(each.aimed)

    return found
