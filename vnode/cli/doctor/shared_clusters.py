"""Checks whether Targets that pods of one namespace may use lead to one cluster. No I/O."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from vnode.api.target_key import TargetKey
from vnode.cli.doctor.facts import ClusterFacts
from vnode.cli.doctor.findings import Finding, Level
from vnode.targets import cluster_identity, model


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """Find such Targets: the room of their cluster counts twice.

    Those of different namespaces are as it should be, one for each tenant.
    """
    by_cluster: dict[str, list[TargetKey]] = {}
    for target in facts.targets:
        if uid := cluster_identity.recorded(target):
            by_cluster.setdefault(uid, []).append(model.key_of(target))

    for found in by_cluster.values():
        for first, other in itertools.combinations(sorted(found, key=str), 2):
            if "" in (first.namespace, other.namespace) or first.namespace == other.namespace:
                yield _finding(facts.name, first, other)


def _finding(place: str, first: TargetKey, other: TargetKey) -> Finding:
    namespace = first.namespace or other.namespace
    pods = f"pods of namespace {namespace}" if namespace else "all pods"
    text = f"{first} and {other} are one cluster: its room counts twice for {pods}"
    cure = f"remove one of them: vnode disconnect {other}"
    return Finding(place, "one cluster", Level.WARN, text, cure)
