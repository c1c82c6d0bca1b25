"""What a workload knows of one of its pods, and how that counts. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from vnode.api import objects
from vnode.api.objects import Object
from vnode.planning.pod_facts import PodFacts, facts_of
from vnode.planning.pod_size import PodSize, size_of
from vnode.planning.revisions import UNREVISED, Revision, RevisionCounts


@dataclass(slots=True, eq=False)
class WorkloadPod:
    """A live pod of a workload. Moments are seconds of the wall clock, as conditions have them."""

    pod: Object
    uid: str
    node: str = ""
    """Where it is bound; "" while it is pending."""
    since: float | None = None
    """Since when it is unschedulable, by its condition PodScheduled."""
    assumed: frozenset[str] = frozenset()
    aim: str = ""
    opened: tuple[tuple[str, float], ...] = ()
    """Further nodes, with the moment since which it may go there."""
    directed: str = ""
    """The node beside its aim that it replaces a moved pod on; "" if there is none."""
    placeholders: tuple[str, ...] = ()
    """Nodes where a bound pod waits for room, too."""
    revision: Revision = UNREVISED
    _size: PodSize | None = None
    _facts: PodFacts | None = None

    def take(self, pod: Object) -> None:
        """Have its newer version."""
        if pod is not self.pod:
            self.pod, self._size, self._facts = pod, None, None

    @property
    def size(self) -> PodSize:
        """What it requests while it is pending."""
        if self._size is None:
            self._size = size_of(self.pod)

        return self._size

    def facts(self) -> PodFacts:
        """Return what moves look at of its present version, which is kept."""
        if self._facts is None:
            self._facts = facts_of(self.pod)

        return self._facts

    def holds(self) -> set[str]:
        """Return the nodes on which it has a place, may get one, or waits for room."""
        if self.node:
            return {self.node, *self.placeholders}

        return {node for node in (self.aim, *(n for n, _ in self.opened), *self.assumed) if node}

    def waits(self) -> Iterator[tuple[str, float]]:
        """Yield the nodes where it waits for a place, with the moment since which it does."""
        if not self.node and self.since is not None:
            if self.aim:
                yield self.aim, self.since

            yield from self.opened


def unschedulable_since(pod: Object) -> float | None:
    """Return the moment since which a pod is unschedulable; None if it was not tried in vain yet.

    Its condition says so, which survives a restart. A pod that a scheduling gate holds has that
    condition for another reason.
    """
    condition = objects.condition(pod, "PodScheduled") or {}
    if condition.get("status") != "False" or condition.get("reason") != "Unschedulable":
        return None

    since = objects.parse_timestamp(str(condition.get("lastTransitionTime") or ""))
    return since.timestamp() if since else None


def count(counts: RevisionCounts, member: WorkloadPod, by: int) -> None:
    """Count a pod in these, or take it out of them again (`by` is 1 or -1)."""
    for node in member.holds():
        step(counts.held, node, by)

    if member.node:
        step(counts.bound, member.node, by)
    elif member.aim:
        step(counts.aimed, member.aim, by)

    for node, _ in member.opened:
        step(counts.opened, node, by)

    for node in member.placeholders:
        step(counts.placeholders, node, by)


def step(counts: Counter[str], node: str, by: int) -> None:
    """Change the count of a node; there are no zeroes."""
    counts[node] += by
    if not counts[node]:
        del counts[node]
