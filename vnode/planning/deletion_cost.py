"""Works out which pods of a planned workload are to go first when it shrinks. Pure.

A ReplicaSet that loses replicas deletes the pods with the lowest `pod-deletion-cost`, once none is
left that is pending or not ready. Seats are taken back in reverse order, as if they had never been
given: the k-th pod of a cluster has the k-th seat there, and the later a seat in the order, the
lower is its cost. So what stays is what would have been planned, minimums included. Costs are
absolute, by the number of the seat: a pod that comes or goes changes those of few others. A pod
that comes takes a seat after those that there are, however old it is, so that no moment shows two
pods of a ReplicaSet with one cost.

Costs are compared within one ReplicaSet, and each is planned by itself while a Deployment is rolled
out (`revisions`): what is left of an old one is by the plan, too, should it be needed again.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.planning.revisions import UNREVISED, Revision, peers
from vnode.planning.seats import Seats

HIGHEST: Final = 1_000_000
"""The cost of the first seat. Each later one has one less, and 1 is for pods that have no seat. A
new pod, which has no cost yet and counts as 0, goes before all others."""

_SEATS_EACH: Final = 10
_SEATS_MORE: Final = 100


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on its node. Moments are compared as the API writes them.

    `cost` is the one that was written on the pod before, 0 if none was.
    """

    uid: str
    node: str
    revision: Revision
    created: str
    cost: int = 0


def costs(pods: Iterable[PlacedPod], seats: Seats) -> dict[str, int]:
    """Return the cost of each pod of a ReplicaSet, by UID.

    Of one cluster's pods a ReplicaSet has the last seats: those of other owners stay when it
    shrinks. Its own stay in the order of their costs; of those that have none, the younger have the
    later seats.
    """
    by_revision: dict[Revision, list[PlacedPod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: (-pod.cost, pod.created, pod.uid)):
        by_revision[pod.revision].append(pod)

    latest = {each: max(pod.created for pod in own) for each, own in by_revision.items()}
    found: dict[str, int] = {}
    for revision, own in by_revision.items():
        if revision != UNREVISED:
            others = (by_revision[peer] for peer in peers(revision, latest) if peer != revision)
            before = Counter(pod.node for each in others for pod in each)
            found |= _costs(own, before, seats)

    return found


def _costs(pods: list[PlacedPod], before: Counter[str], seats: Seats) -> dict[str, int]:
    """Return the costs of pods that are ranked already, after so many others on each node."""
    found = dict.fromkeys((pod.uid for pod in pods), 1)
    by_node: dict[str, deque[PlacedPod]] = defaultdict(deque)
    for pod in pods:
        by_node[pod.node].append(pod)

    left, taken = len(pods), Counter(before)
    # A cluster with far more pods than its weight gives it may have seats only far down the order.
    for number, node in enumerate(seats.first(_SEATS_EACH * (left + taken.total()) + _SEATS_MORE)):
        if taken[node] > 0:
            taken[node] -= 1
        elif by_node[node]:
            found[by_node[node].popleft().uid] = max(1, HIGHEST - number)
            left -= 1

        if not left:
            break

    return found
