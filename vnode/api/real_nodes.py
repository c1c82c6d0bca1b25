"""Keeps a pod on real nodes by a required node affinity: pure.

For pods that tolerate the taint of virtual nodes because they tolerate everything: nobody has asked
for them to go to another cluster.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, taints, virtual_constraints
from vnode.api.objects import Object, Objects

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_REAL_NODE: Final[Object] = {
    "key": keys.PROVIDER_LABEL,
    "operator": "NotIn",
    "values": [keys.PROVIDER],
}


_TYPE: Final = ("type", "virtual-kubelet")
"""The label by which users of other virtual kubelets choose them."""


def is_lured(spec: Object) -> bool:
    """Tell whether a pod may go to virtual nodes only because it tolerates every taint."""
    return tolerates_everything(spec) and not _is_meant(spec)


def tolerates_everything(spec: Object) -> bool:
    """Tell whether the pod tolerates the taint of virtual nodes, and does not name it."""
    found = [t for t in spec.get("tolerations") or () if taints.tolerates(t, keys.PROVIDER_TAINT)]
    return bool(found) and not any(toleration.get("key") for toleration in found)


def required_terms(spec: Object) -> Objects:
    """Return the terms of the required node affinity, of which one must hold."""
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    found: Objects = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    return found


def _is_meant(spec: Object) -> bool:
    """Tell whether the pod says something of virtual nodes, be it to choose or to avoid them."""
    chosen = virtual_constraints.of_spec(spec)
    if chosen.get("nodeSelector") or (chosen.get("affinity") or {}).get("nodeAffinity"):
        return True

    if _TYPE in (spec.get("nodeSelector") or {}).items():
        return True

    return any(
        expression.get("key") in (keys.PROVIDER_LABEL, _TYPE[0])
        for term in required_terms(spec)
        for expression in term.get("matchExpressions") or ()
    )


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
