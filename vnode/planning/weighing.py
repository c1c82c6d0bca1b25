"""Weighs clusters by free capacity, for policies whose entries have no weights. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from vnode.api.resources import Resources
from vnode.planning.policy import by_capacity
from vnode.planning.seats import MAX_WEIGHT, Share


class SizedNode(Protocol):
    """What weighing looks at of a virtual node; `VirtualNodeInfo` has it."""

    @property
    def name(self) -> str:
        """The name of the Node."""

    def known_free(self) -> Resources | None:
        """Return what the node has free, as far as it is known; None if nothing is."""


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """The shares of a workload by free capacity."""

    of: tuple[Share, ...]
    """The shares that were weighed."""
    weights: Mapping[str, int]
    """By node."""
    shares: tuple[Share, ...]


def weigh(
    shares: tuple[Share, ...],
    nodes: Iterable[SizedNode],
    requests: Resources,
    bound: Mapping[str, int],
) -> Weighting:
    """Weigh shares by how many pods of the workload each cluster has or can take.

    `bound` has its pods by node. So a pod that is moved changes no weight.
    """
    weights: dict[str, int] = {}
    for node in nodes:
        if (free := node.known_free()) is not None:
            fits = min(free.get(name, 0) // amount for name, amount in requests.items() if amount)
            weights[node.name] = min(MAX_WEIGHT, max(0, fits) + bound.get(node.name, 0))

    # Some clusters do not say what they have free: take them for ordinary ones.
    usual = max(1, sum(weights.values()) // len(weights)) if weights else 1
    weights = {share.node: weights.get(share.node, usual) for share in shares}
    weighed = tuple(by_capacity(share, weights[share.node]) for share in shares)
    return Weighting(shares, weights, weighed)
