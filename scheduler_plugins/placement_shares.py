"""Finds the shares that clusters have of a workload by its policy, made anew only if need be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from vnode.api.objects import Object
from vnode.planning import weighing
from vnode.planning.policy import Policy
from vnode.planning.seats import Share
from vnode.planning.weighing import Weighting
from vnode.planning.workload import Workload
from vnode.scheduling.snapshot import Snapshot

_POLICIES_KEPT: Final = 1000  # whose shares are known; all are forgotten when there are more

_Known: TypeAlias = tuple[Policy, tuple[Object, ...], tuple[Share, ...]]


class KnownShares:
    """Keeps the shares of policies for as long as neither these nor the nodes change."""

    def __init__(self) -> None:
        # By namespace and name: the policy, the nodes as they were, and the shares of these.
        self._shares: dict[tuple[str, str], _Known] = {}

    def of(self, policy: Policy, snapshot: Snapshot) -> tuple[Share, ...]:
        """Return the shares of all nodes of the policy, made anew only when one has changed."""
        nodes = tuple(info.virtual.node for info in snapshot.nodes)
        key = policy.namespace, policy.name
        known = self._shares.get(key)
        if known is not None and known[0] is policy and _are_same(known[1], nodes):
            return known[2]

        shares = policy.shares(snapshot.nodes)
        if known is not None and known[2] == shares:
            shares = known[2]

        if len(self._shares) >= _POLICIES_KEPT:
            self._shares.clear()

        self._shares[key] = policy, nodes, shares
        return shares


def weighting(
    workload: Workload, shares: tuple[Share, ...], rooms: Callable[[], Mapping[str, int | None]]
) -> Weighting:
    """Weigh shares by how many pods of the workload clusters have room for.

    While pods have aims the weights stay: a burst is planned as one.
    """
    known = workload.weighting
    if known is not None and known.of is shares and workload.aimed:
        return known

    return weighing.weigh(shares, rooms(), workload.bound)


def _are_same(left: tuple[Object, ...], right: tuple[Object, ...]) -> bool:
    """Tell whether they are the very same objects, which nobody changes."""
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
