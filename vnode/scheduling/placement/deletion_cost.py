"""Works out which pods of a planned workload are to go first when it shrinks. Pure.

A ReplicaSet that loses replicas deletes the pods with the lowest `pod-deletion-cost`, once none is
left that is pending or not ready. Seats are taken back in reverse order, as if they had never been
given: the k-th pod of a cluster has the k-th seat there, and the later a seat in the order, the
lower is its cost. So what stays is what would have been planned, minimums included. Costs are
absolute, by the number of the seat: a pod that comes or goes changes those of few others. A pod
that comes takes a seat after those that are there, however old it is, so that no moment shows two
pods with one cost.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from vnode.scheduling.placement.seats import Seats

HIGHEST: Final = 1_000_000
"""The cost of the first seat. Each later one has one less, and 1 is for pods that have no seat. A
new pod, which has no cost yet and counts as 0, goes before all others."""

_SEATS_EACH: Final = 10
_SEATS_MORE: Final = 100


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """A pod on its node. Owners are compared by identity, moments as the API writes them.

    `cost` is the one that was written on the pod before, 0 if none was.
    """

    uid: str
    node: str
    owner: str
    created: str
    cost: int = 0


def costs(pods: Iterable[PlacedPod], seats: Seats) -> dict[str, int]:
    """Return the cost of each pod, by UID.

    Of one cluster's pods those have the later seats that an older ReplicaSet owns: a rollout
    removes them, and is to remove them where the plan has too many. One owner's stay in the order
    of their costs; of those that have none, the younger have the later seats.
    """
    pods = tuple(pods)
    newest: dict[str, str] = {}
    by_node: dict[str, list[PlacedPod]] = defaultdict(list)
    for pod in sorted(pods, key=lambda pod: (-pod.cost, pod.created, pod.uid)):
        newest[pod.owner] = max(pod.created, newest.get(pod.owner, ""))
        by_node[pod.node].append(pod)

    last_first = sorted(newest, key=lambda owner: (newest[owner], owner), reverse=True)
    rank = {owner: place for place, owner in enumerate(last_first)}
    for on_node in by_node.values():
        on_node.sort(key=lambda pod: rank[pod.owner])

    found = dict.fromkeys((pod.uid for pod in pods), 1)
    missing = Counter({node: len(on_node) for node, on_node in by_node.items()})
    left = len(pods)
    # A cluster with far more pods than its weight gives it may have seats only far down the order.
    for number, node in enumerate(seats.first(_SEATS_EACH * len(pods) + _SEATS_MORE)):
        if missing[node] > 0:
            on_node = by_node[node]
            found[on_node[len(on_node) - missing[node]].uid] = max(1, HIGHEST - number)
            missing[node] -= 1
            left -= 1

        if not left:
            break

    return found
