"""Makes taints of a virtual node from those of its ManagedCluster, and merges them in. Pure.

Open Cluster Management taints a ManagedCluster to keep what is placed away from it. A Node's list
of taints has many writers: people, the node lifecycle controller, and we. So an annotation records
which of them are the ManagedCluster's, and only these are ever taken away again, also by an agent
that starts later. Whoever manages the hub writes ManagedClusters, but not Nodes: what Kubernetes
or vnode would read as its own is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from vnode.api import keys, names, objects, taints
from vnode.api.objects import Object, Objects

MOST: Final = 20  # taints of one ManagedCluster
_DOMAIN: Final = "cluster.open-cluster-management.io/"
_HEALTH: Final = (_DOMAIN + "unreachable", _DOMAIN + "unavailable")
_EFFECTS: Final = {
    # Never NoExecute: in OCM, too, what was placed stays when a cluster is tainted anew for new
    # ones, and a taint of an inventory must not end pods that run.
    "NoSelect": taints.NO_SCHEDULE,
    "NoSelectIfNew": taints.NO_SCHEDULE,
    "PreferNoSelect": taints.PREFER_NO_SCHEDULE,
}


class TaintSyncStatus(NamedTuple):
    """Whether a virtual node has the taints of its ManagedCluster, with a reason and a message."""

    is_synced: bool
    reason: str
    message: str


def of_cluster(cluster: Object) -> Objects:
    """Return what a ManagedCluster's taints are on a virtual node, at most MOST, by key.

    Those of OCM's own health checks are left out: whether a target works, vnode's probe decides.
    Of two that a Node cannot have both, the one that OCM takes more seriously stays.
    """
    listed = objects.spec(cluster).get("taints")
    found: dict[tuple[str, str], Object] = {}
    for effect in _EFFECTS:
        for taint in listed if isinstance(listed, list) else ():
            if isinstance(taint, dict) and taint.get("effect") == effect:
                made = _taint(taint.get("key"), taint.get("value"), _EFFECTS[effect])
                if made is not None:
                    found.setdefault((made["key"], made["effect"]), made)

    return [found[place] for place in sorted(found)[:MOST]]


def merge(node: Object, present: Objects, wanted: Sequence[Object]) -> tuple[Objects, str] | None:
    """Return the Node's taints with those of its ManagedCluster, and the record of these.

    None if nothing changes. Taints that others wrote stay, also where one of the ManagedCluster's
    would have taken its place. The record is empty if there is none.
    """
    before = list(_recorded(node))
    others = [taint for taint in present if not _is_one_of(taint, before)]
    taken = {_place(taint) for taint in others}
    ours = [taint for taint in wanted if _place(taint) not in taken]
    kept = [taint for taint in present if _is_one_of(taint, ours) or taint in others]
    merged = [*kept, *(taint for taint in ours if not _is_one_of(taint, kept))]
    record = json.dumps(ours, separators=(",", ":")) if ours else ""
    same = record == objects.annotations(node).get(keys.MEMBER_TAINTS, "")
    return None if same and merged == present else (merged, record)


def _taint(key: Any, value: Any, effect: str) -> Object | None:
    value = "" if value is None else value
    if not isinstance(key, str) or not isinstance(value, str) or not _may_have(key):
        return None

    if value and not names.LABEL_VALUE.fullmatch(value):
        return None

    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def _may_have(key: str) -> bool:
    """Tell whether a ManagedCluster may give a virtual node a taint with that key."""
    domain = key.partition("/")[0] if "/" in key else ""
    reserved = ("kubernetes.io", "k8s.io", keys.PROVIDER_LABEL.partition("/")[0])
    return (
        bool(names.QUALIFIED_NAME.fullmatch(key))
        and keys.is_foreign(key)
        and key not in _HEALTH
        and not any(domain == each or domain.endswith("." + each) for each in reserved)
    )


def _recorded(node: Object) -> Iterator[Object]:
    """Return the taints that a Node has of its ManagedCluster, by the record on it."""
    try:
        found = json.loads(objects.annotations(node).get(keys.MEMBER_TAINTS) or "[]")
    except (ValueError, RecursionError):
        return

    for taint in found if isinstance(found, list) else ():
        if isinstance(taint, dict) and taint.get("effect") in _EFFECTS.values():
            made = _taint(taint.get("key"), taint.get("value"), taint["effect"])
            if made is not None:
                yield made


def _place(taint: Object) -> tuple[Any, Any]:
    """Return that by which a Node's taints are unique."""
    return taint.get("key"), taint.get("effect")


def _same(taint: Object, other: Object) -> bool:
    value = (taint.get("value") or "") == (other.get("value") or "")
    return value and _place(taint) == _place(other)


def _is_one_of(taint: Object, listed: Sequence[Object]) -> bool:
    return any(_same(taint, other) for other in listed)
