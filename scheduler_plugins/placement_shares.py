"""Finds the shares that clusters have of a workload by its policy, made anew only if need be.

Policies may be large, and Nodes as well: what is gone or has changed is not kept.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from vnode.api.objects import Object
from vnode.planning import weighing
from vnode.planning.policy import Policy
from vnode.planning.seats import Share
from vnode.planning.weighing import Weighting
from vnode.planning.workload import Workload
from vnode.scheduling.snapshot import Snapshot

_POLICIES_KEPT: Final = 1000
"""Of a namespace, whose shares are known; all of it are forgotten when there are more. Those of
others stay: a burst is planned as one only while its shares are the same (`weighting`)."""

_NAMESPACES_KEPT: Final = 1000  # before those are looked for that have no policy any more


class _SharesOfPolicy(NamedTuple):
    policy: weakref.ref[Policy]
    nodes: int
    """The number of the nodes as they were."""
    shares: tuple[Share, ...]


class KnownShares:
    """Keeps the shares of policies for as long as neither these nor the nodes change."""

    def __init__(self) -> None:
        # By namespace, "" for those of the cluster, and by name. Nothing in it is empty.
        self._shares: dict[str, dict[str, _SharesOfPolicy]] = {}
        self._most = _NAMESPACES_KEPT
        self._nodes: tuple[Object, ...] = ()
        self._number = 0  # of these nodes

    def of(self, policy: Policy, snapshot: Snapshot) -> tuple[Share, ...]:
        """Return the shares of all nodes of the policy, made anew only when one has changed."""
        nodes = tuple(info.virtual.node for info in snapshot.nodes)
        if not _are_same(self._nodes, nodes):
            self._nodes = nodes
            self._number += 1

        of_namespace = self._shares.get(policy.namespace, {})
        known = of_namespace.get(policy.name)
        if known is not None and known.policy() is policy and known.nodes == self._number:
            return known.shares

        shares = policy.shares(snapshot.nodes)
        if known is not None and known.shares == shares:
            shares = known.shares

        if known is None and len(of_namespace) >= _POLICIES_KEPT:
            of_namespace.clear()

        of_namespace[policy.name] = _SharesOfPolicy(weakref.ref(policy), self._number, shares)
        if policy.namespace not in self._shares:
            self._shares[policy.namespace] = of_namespace
            self._forget_gone()

        return shares

    def _forget_gone(self) -> None:
        """Forget namespaces without policies, when there are twice as many as were left before."""
        if len(self._shares) <= self._most:
            return

        self._shares = {
            namespace: shares
            for namespace, shares in self._shares.items()
            if any(each.policy() is not None for each in shares.values())
        }
        self._most = max(_NAMESPACES_KEPT, 2 * len(self._shares))


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
