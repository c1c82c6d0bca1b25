"""Weighs clusters by free capacity, for policies whose entries have no weights. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vnode.planning.policy import by_capacity
from vnode.planning.seats import MAX_WEIGHT, Share


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """The shares of a workload by free capacity."""

    of: tuple[Share, ...]
    """The shares that were weighed."""
    weights: Mapping[str, int]
    """By node."""
    shares: tuple[Share, ...]


def weigh(
    shares: tuple[Share, ...], rooms: Mapping[str, int | None], bound: Mapping[str, int]
) -> Weighting:
    """Weigh shares by how many pods of the workload each cluster has or can take.

    `rooms` says how many more each can take, None if that is not known; `bound` has its pods by
    node. So a pod that is moved changes no weight.
    """
    weights = {
        node: min(MAX_WEIGHT, fits + bound.get(node, 0))
        for node, fits in rooms.items()
        if fits is not None
    }

    # Some clusters do not say what they have free: take them for ordinary ones.
    usual = max(1, sum(weights.values()) // len(weights)) if weights else 1
    weights = {share.node: weights.get(share.node, usual) for share in shares}
    weighed = tuple(by_capacity(share, weights[share.node]) for share in shares)
    return Weighting(shares, weights, weighed)
