"""Reads decisions from the objects that carry them, a hundred clusters each. Pure.

Two kinds have the name PlacementDecision. SIG Multicluster's name ClusterProfiles; the slices of
one decision have a key in common, and an index. Open Cluster Management's name ManagedClusters, and
have a label with the name of the Placement. Whoever writes them may err: what cannot be read is
left out and told, and hurts nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final

from vnode.api import keys, kinds, names, objects, visible
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.planning.cluster_decision import (
    ClusterDecision,
    DecidedCluster,
    DecisionKind,
    DecisionReference,
)

MOST: Final = 5000
"""Clusters of a decision that are read, and entries that are none: some 30 ms."""
MOST_SLICES: Final = 1000
"""Objects of a decision that are read."""
_SHOWN: Final = 60  # characters of what is wrong
_ODDITIES: Final = 5  # that are told
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,5}", re.ASCII)
_NUMBER: Final = re.compile(r".*-([0-9]{1,6})", re.ASCII | re.DOTALL)
_LAST: Final = 10**6

NOT_FOUND: Final = "DecisionNotFound"

Profiles = Mapping[str, frozenset[str]]
"""`namespace/name` of a ClusterProfile -> the virtual nodes of the Targets that name it."""


def kind_of(reference: DecisionReference) -> Kind:
    """Return the kind of the objects that carry a decision."""
    if reference.kind is DecisionKind.PLACEMENT:
        return kinds.OCM_PLACEMENT_DECISIONS

    return kinds.PLACEMENT_DECISIONS


def carried(obj: Object) -> tuple[str, ...]:
    """Return the names of the decisions that an object may be a slice of."""
    labels = objects.labels(obj)
    named = {labels.get(keys.OCM_PLACEMENT), labels.get(keys.DECISION_KEY), objects.name(obj)}
    return tuple(name for name in named if name)


def read(
    reference: DecisionReference, found: Iterable[Object], profiles: Profiles
) -> ClusterDecision:
    """Read a decision from the objects of its namespace."""
    slices = _slices(reference, found)
    if not slices:
        return ClusterDecision(reference, problem=_absent(reference), reason=NOT_FOUND)

    by_placement = reference.kind is DecisionKind.PLACEMENT
    oddities = dict[str, None]()
    if not by_placement:
        oddities |= dict.fromkeys(islice(_gaps(slices), _ODDITIES))

    entries = chain.from_iterable(
        _of_placement(obj) if by_placement else _of_profiles(obj, profiles)
        for obj in slices[:MOST_SLICES]
    )
    clusters = dict[str, DecidedCluster]()  # in their order; of two alike the first counts
    for cluster in islice(entries, MOST):
        if isinstance(cluster, str):
            oddities[cluster] = None
        else:
            clusters.setdefault(cluster.name, cluster)

    if len(slices) > MOST_SLICES:
        oddities[f"only the first {MOST_SLICES} objects are read"] = None
    elif next(entries, None) is not None:
        oddities[f"only the first {MOST} clusters are read"] = None

    told = tuple(oddities)
    return ClusterDecision(reference, tuple(clusters.values()), oddities=told[-_ODDITIES:])


def _absent(reference: DecisionReference) -> str:
    namespace, name = reference.namespace, reference.name
    if reference.kind is DecisionKind.PLACEMENT:
        return (
            f"there is no PlacementDecision of placement {name} in namespace {namespace}: create "
            f"that Placement, or see why it has none: kubectl describe placement {name} "
            f"--namespace {namespace}"
        )

    return (
        f"there is no PlacementDecision with the label {keys.DECISION_KEY}={name}, or of that name "
        f"without the label, in namespace {namespace}: name one of kubectl get "
        f"{kinds.PLACEMENT_DECISIONS.resource} --namespace {namespace} --show-labels"
    )


def _slices(reference: DecisionReference, found: Iterable[Object]) -> list[Object]:
    """Return the slices of one decision, in their order."""
    mine = [obj for obj in found if objects.namespace(obj) == reference.namespace]
    if reference.kind is DecisionKind.PLACEMENT:
        of_it = [o for o in mine if objects.labels(o).get(keys.OCM_PLACEMENT) == reference.name]
        return sorted(of_it, key=_group_and_number)

    by_key = [o for o in mine if objects.labels(o).get(keys.DECISION_KEY) == reference.name]
    alone = [
        obj
        for obj in mine
        if objects.name(obj) == reference.name and keys.DECISION_KEY not in objects.labels(obj)
    ]
    return sorted(
        by_key or alone, key=lambda obj: (_index(obj, keys.DECISION_INDEX), objects.name(obj))
    )


def _group_and_number(obj: Object) -> tuple[int, int, str]:
    """Return what orders the decisions of a Placement: `web-decision-10` comes after `...-9`."""
    number = _NUMBER.fullmatch(objects.name(obj))
    place = int(number[1]) if number else _LAST
    return _index(obj, keys.OCM_DECISION_GROUP), place, objects.name(obj)


def _index(obj: Object, key: str) -> int:
    text = objects.labels(obj).get(key, "0")
    return int(text) if _INDEX.fullmatch(text) else _LAST


def _gaps(slices: list[Object]) -> Iterator[str]:
    for place, obj in enumerate(slices):
        if _index(obj, keys.DECISION_INDEX) != place:
            yield (
                f"{_shown(objects.name(obj))} is slice {place} by its place, and "
                f"{_shown(objects.labels(obj).get(keys.DECISION_INDEX, '0'))} by its label "
                f"{keys.DECISION_INDEX}"
            )


def _of_placement(obj: Object) -> Iterator[DecidedCluster | str]:
    status = obj.get("status")
    for entry in _entries(status.get("decisions") if isinstance(status, dict) else None):
        name = entry.get("clusterName") if isinstance(entry, dict) else None
        if isinstance(name, str) and names.SUBDOMAIN.fullmatch(name):
            yield DecidedCluster(name)
        else:
            yield f"{_shown(objects.name(obj))} has a decision without a usable clusterName"


def _of_profiles(obj: Object, profiles: Profiles) -> Iterator[DecidedCluster | str]:
    for entry in _entries(obj.get("decisions")):
        named = entry.get("clusterProfileRef") if isinstance(entry, dict) else None
        name = named.get("name") if isinstance(named, dict) else None
        namespace = (
            named.get("namespace") if isinstance(named, dict) else None
        ) or objects.namespace(obj)
        if all(isinstance(t, str) and names.SUBDOMAIN.fullmatch(t) for t in (name, namespace)):
            key = objects.join_key(namespace, str(name))
            yield DecidedCluster(key, profiles.get(key, frozenset()))
        else:
            yield f"{_shown(objects.name(obj))} has a decision without a usable clusterProfileRef"


def _entries(raw: Any) -> list[Any]:
    return raw if isinstance(raw, list) else []


def _shown(text: Any) -> str:
    return visible.line(str(text)[:_SHOWN])
