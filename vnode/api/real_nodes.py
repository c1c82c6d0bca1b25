"""Keeps a pod on real nodes by a required node affinity: pure.

For pods that tolerate the taint of virtual nodes because they tolerate everything: nobody has asked
for them to go to another cluster.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys
from vnode.api.objects import Object

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_REAL_NODE: Final[Object] = {
    "key": keys.PROVIDER_LABEL,
    "operator": "NotIn",
    "values": [keys.PROVIDER],
}


def affinity(spec: Object) -> Object:
    """Return the affinity of a pod, with real nodes required."""
    present = spec.get("affinity") or {}
    node = present.get("nodeAffinity") or {}
    required = node.get(REQUIRED) or {}
    given = required.get("nodeSelectorTerms")
    terms = [_on_real_nodes(term) for term in given] if given else [_on_real_nodes(None)]
    required = {**required, "nodeSelectorTerms": terms}
    return {**present, "nodeAffinity": {**node, REQUIRED: required}}


def _on_real_nodes(term: Object | None) -> Object:
    """Add real nodes to the term of a node selector; an empty term still matches nothing."""
    if term == {}:
        return term

    term = term or {}
    others = [e for e in term.get("matchExpressions") or () if e != _REAL_NODE]
    return {**term, "matchExpressions": [*others, _REAL_NODE]}
