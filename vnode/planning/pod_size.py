"""What pods request, to compare them: who waits shows others that a cluster is full for such a pod.

Pods of a workload mostly are of one size. They are not where `groupBy` joins several owners, in a
rollout that changes requests, and where a pod is resized while it waits. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from vnode.api import resources
from vnode.api.objects import Object


@dataclass(frozen=True, slots=True)
class PodSize:
    """What a pod requests."""

    requests: tuple[tuple[str, int], ...]
    """Resource name and amount, in the order of names."""

    def is_within(self, other: PodSize) -> bool:
        """Tell whether there is room for a pod of this size wherever there is for the other."""
        if self == other:
            return True

        most = dict(other.requests)
        return all(amount <= most.get(name, 0) for name, amount in self.requests)


def size_of(pod: Object) -> PodSize:
    """Return the size of a pod that is not bound, as informers keep it."""
    return PodSize(tuple(sorted(resources.pod_requests(pod).items())))
