"""Bounds the policies that are in force: the oldest of each namespace, and of those for all.

Whoever may edit a namespace may make policies, and each costs the agent memory, and time for pods
and changes. All that there are count, also those that could not be in force for another reason, so
that what becomes of one policy depends on no other's clusters.
"""

from __future__ import annotations

from typing import Final

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.oldest_first import OldestFirst

TOO_MANY: Final = "TooManyPolicies"
"""The reason of the condition of a policy that does not fit."""
IN_NAMESPACE: Final = 200
CLUSTER_WIDE: Final = 1000


class PolicyQuota:
    """Tells which policies fit, by the keys of their objects."""

    def __init__(self) -> None:
        self._local = OldestFirst(IN_NAMESPACE)
        self._cluster_wide = OldestFirst(CLUSTER_WIDE)

    def observe(self, old: Object | None, new: Object | None) -> str | None:
        """Note that a policy came or went.

        Return the key of another one that fits from now on, or no longer does.
        """
        namespace = objects.namespace(objects.latest(old, new))
        name = self._of(namespace).observe(old, new)
        return None if name is None else objects.join_key(namespace, name)

    def problem(self, key: str) -> str:
        """Return why a policy does not fit, with the cure; "" if it does."""
        namespace, name = objects.split_key(key)
        policies = self._of(namespace)
        if policies.fits(namespace, name):
            return ""

        what = (
            f"namespace {namespace} has more PlacementPolicies"
            if namespace
            else "there are more ClusterPlacementPolicies"
        )
        return (
            f"{what} than are in force, which are the oldest {policies.limit}: "
            "delete those that are not needed"
        )

    def _of(self, namespace: str) -> OldestFirst:
        return self._local if namespace else self._cluster_wide
