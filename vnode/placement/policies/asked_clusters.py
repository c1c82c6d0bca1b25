"""Answers what policies ask of clusters: which there are, and which others have decided for.

Each answer is found once for all policies that ask, until something changes: a namespace may have
200 policies that follow one decision of thousands of clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vnode.kube.informer import Informer
from vnode.placement.decisions.followed import FollowedDecisions
from vnode.planning.cluster_decision import ClusterDecision, DecisionReference


class KnownClusters(Protocol):
    """The Targets of this cluster, as far as policies name them."""

    async def wait_synced(self) -> None:
        """Return once all are known."""

    def cluster_names(self, namespace: str) -> frozenset[str] | None:
        """Return the names that a policy of that namespace may use; None while unknown."""

    def nodes_by_profile(self, namespace: str) -> Mapping[str, frozenset[str]] | None:
        """Return the virtual nodes for pods of that namespace, "" for all, by the ClusterProfiles
        that their Targets name (`namespace/name`); None while unknown."""

    @property
    def informers(self) -> tuple[Informer, ...]:
        """The informers of Targets and ClusterTargets."""


class AskedClusters:
    """The answers; `forget` has them found anew. What is not known yet is asked for each time."""

    def __init__(self, clusters: KnownClusters, decisions: FollowedDecisions) -> None:
        self._clusters = clusters
        self._decisions = decisions
        self._names: dict[str, frozenset[str]] = {}  # by namespace, as the others
        self._profiles: dict[str, Mapping[str, frozenset[str]]] = {}
        self._decided: dict[tuple[str, DecisionReference], ClusterDecision] = {}

    def forget(self) -> None:
        """Forget all answers."""
        self._names.clear()
        self._profiles.clear()
        self._decided.clear()

    def forget_decisions(self) -> None:
        """Forget what others have decided."""
        self._decided.clear()

    def names(self, namespace: str) -> frozenset[str] | None:
        """Return the names that a policy of that namespace may use; None while unknown."""
        found = self._names.get(namespace)
        if found is None and (found := self._clusters.cluster_names(namespace)) is not None:
            self._names[namespace] = found

        return found

    def decision(self, namespace: str, reference: DecisionReference) -> ClusterDecision:
        """Return a decision for policies of that namespace, as it is now."""
        found = self._decided.get((namespace, reference))
        if found is None:
            found = self._decisions.find(reference, self._nodes_by_profile(namespace))
            if found.is_known:
                self._decided[namespace, reference] = found

        return found

    def _nodes_by_profile(self, namespace: str) -> Mapping[str, frozenset[str]] | None:
        found = self._profiles.get(namespace)
        if found is None and (found := self._clusters.nodes_by_profile(namespace)) is not None:
            self._profiles[namespace] = found

        return found
