"""Separates scheduling constraints about virtual nodes from a pod's other ones: pure.

A quota controller, for example, adds a `nodeSelector` for virtual nodes. Such constraints choose a
target, and no real node has what they name. So the webhook takes them over into the proxy
(`of_spec`), and a delegate is sent without them (`without`).

A pod's node affinity is an OR of terms, and one term may name labels of both sorts. In a target, a
term is reduced to what it says of real nodes, if what it says of virtual nodes holds for that
target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from vnode.api import keys, names, selectors, taints
from vnode.api.objects import Object, Objects

HOSTNAME: Final = "kubernetes.io/hostname"
_NAME: Final = "metadata.name"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_PARTS: Final = ("matchExpressions", "matchFields")

_IDENTITY: Final = (
    keys.PROVIDER_LABEL,
    keys.TARGET_NAMESPACE,
    keys.TARGET_NAME,
    keys.CLUSTER_TARGET_NAME,
)

_Reduce: TypeAlias = Callable[[Object], bool | Object]
"""Reduces an expression: to True if it holds, False if not, else to what the target must check."""


class VirtualNodeIdentity(NamedTuple):
    """What is known of every virtual node: its name, and the Target it stands for."""

    name: str
    labels: Mapping[str, str]


def virtual_node(target_namespace: str, target_name: str) -> VirtualNodeIdentity:
    """Return the virtual node of a Target; the namespace of a ClusterTarget is ""."""
    name = names.virtual_node(target_namespace, target_name)
    return VirtualNodeIdentity(name, identity_labels(target_namespace, target_name))


def identity_labels(target_namespace: str, target_name: str) -> dict[str, str]:
    """Return the labels that say which Target a virtual node stands for."""
    known = {keys.PROVIDER_LABEL: keys.PROVIDER}
    if not target_namespace:
        return {**known, keys.CLUSTER_TARGET_NAME: target_name}

    return {**known, keys.TARGET_NAMESPACE: target_namespace, keys.TARGET_NAME: target_name}


def of_spec(spec: Object) -> Object:
    """Return the constraints by which a pod chooses a virtual node, without empty fields."""
    found: Object = {}
    if chosen := {k: v for k, v in _selector(spec).items() if _names_virtual(k, "In", [v])}:
        found["nodeSelector"] = chosen

    affinity = spec.get("affinity") or {}
    kept = {"nodeAffinity": _choice(affinity.get("nodeAffinity") or {})}
    for field in ("podAffinity", "podAntiAffinity"):
        kept[field] = _of_pods(affinity.get(field) or {}, _is_virtual_key)

    if kept := {field: value for field, value in kept.items() if value}:
        found["affinity"] = kept

    spread = [s for s in spec.get("topologySpreadConstraints") or () if _spreads_virtually(s)]
    return {**found, "topologySpreadConstraints": spread} if spread else found


def without(spec: Object, node: VirtualNodeIdentity) -> Object:
    """Return the spec for the target that `node` stands for; the same object if it is equal."""
    kept: Object = {
        "nodeSelector": {
            k: v for k, v in _selector(spec).items() if not _names_virtual(k, "In", [v])
        },
        "tolerations": [t for t in spec.get("tolerations") or () if not _tolerates(t)],
        "affinity": _affinity_without(spec.get("affinity") or {}, node),
        "topologySpreadConstraints": [
            s for s in spec.get("topologySpreadConstraints") or () if not _spreads_virtually(s)
        ],
    }
    changed = {field: value for field, value in kept.items() if value != (spec.get(field) or value)}
    if not changed:
        return spec

    return {k: v for k, v in {**spec, **changed}.items() if k not in changed or v}


def _selector(spec: Object) -> dict[str, str]:
    return spec.get("nodeSelector") or {}


def _tolerates(toleration: Object) -> bool:
    """Tell whether it is for the taint of virtual nodes; one for all taints is not."""
    return toleration.get("key") == keys.PROVIDER_LABEL and taints.tolerates(
        toleration, keys.PROVIDER_TAINT
    )


def _spreads_virtually(constraint: Object) -> bool:
    return _is_virtual_key(str(constraint.get("topologyKey")))


def _is_virtual_key(key: str) -> bool:
    return key == keys.PROVIDER_LABEL or not keys.is_foreign(key)


def _names_virtual(key: str, operator: str, values: list[str]) -> bool:
    """Tell whether an expression on a label, or on the node's name, is about virtual nodes.

    One that excludes virtual nodes, or wants another provider's, is about the nodes of the target.
    """
    if key == keys.PROVIDER_LABEL:
        return operator == "Exists" or (operator == "In" and keys.PROVIDER in values)

    if key in (HOSTNAME, _NAME):
        return any(map(names.may_be_virtual_node, values))

    return not keys.is_foreign(key)


def _is_virtual(expression: Object) -> bool:
    key, operator = str(expression.get("key")), str(expression.get("operator"))
    return _names_virtual(key, operator, expression.get("values") or [])


def _reducer(node: VirtualNodeIdentity | None) -> _Reduce:
    """Return how to reduce expressions for a target; for None, all on virtual nodes hold."""

    def reduced(expression: Object) -> bool | Object:
        if not _is_virtual(expression):
            return expression

        key = expression.get("key")
        if key in (HOSTNAME, _NAME):
            return _by_name(expression, node)

        if node is None or key not in _IDENTITY:
            return True  # a label of another origin: the source's scheduler has checked it

        selector = selectors.from_label_selector({"matchExpressions": [expression]})
        return selector is not None and selector.matches(node.labels)

    return reduced


def _by_name(expression: Object, node: VirtualNodeIdentity | None) -> bool | Object:
    values: list[str] = expression["values"]
    real = [value for value in values if not names.may_be_virtual_node(value)]
    left: Object = {**expression, "values": real}
    if expression.get("operator") == "In":
        return True if node is None or node.name in values else (left if real else False)

    if node is not None and node.name in values:
        return False

    return left if real else True


def _reduced_term(term: Object, reduce: _Reduce) -> bool | Object:
    """Reduce a term whose expressions must all hold; an empty one matches nothing, and stays."""
    if not any(term.get(part) for part in _PARTS):
        return term

    left: Object = {}
    for part in _PARTS:
        results = [reduce(expression) for expression in term.get(part) or ()]
        if not all(results):
            return False

        if kept := [result for result in results if result is not True]:
            left[part] = kept

    return left or True


def _affinity_without(affinity: Object, node: VirtualNodeIdentity) -> Object:
    nodes = affinity.get("nodeAffinity") or {}
    kept: Object = {"nodeAffinity": _node_affinity_without(nodes, node)}
    for field in ("podAffinity", "podAntiAffinity"):
        kept[field] = _of_pods(affinity.get(field) or {}, lambda key: not _is_virtual_key(key))

    changed = {f: value for f, value in kept.items() if value != (affinity.get(f) or value)}
    return {f: v for f, v in {**affinity, **changed}.items() if f not in changed or v}


def _node_affinity_without(affinity: Object, node: VirtualNodeIdentity) -> Object:
    required = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    preferred = affinity.get(_PREFERRED) or []
    kept = dict(affinity)
    terms = _required_without(required, node)
    if terms != required:
        kept[_REQUIRED] = {"nodeSelectorTerms": terms} if terms else None

    left = [_reduced_preference(entry, node) for entry in preferred]
    if (wishes := [entry for entry in left if entry is not None]) != preferred:
        kept[_PREFERRED] = wishes

    return {field: value for field, value in kept.items() if value}


def _required_without(terms: Objects, node: VirtualNodeIdentity) -> Objects:
    """Reduce the required terms; to none at all if one holds by what it says of virtual nodes
    alone.

    If none is for this target, the pod is here all the same, by an older agent's choice or because
    somebody named the node: then what they say of virtual nodes is taken to hold.
    """
    for where in (node, None):
        reduce = _reducer(where)
        left = [_reduced_term(term, reduce) for term in terms]
        if any(term is True for term in left):
            return []

        found = [term for term in left if isinstance(term, dict)]
        if any(found) or not any(term is False for term in left):
            return found

    return []


def _reduced_preference(entry: Object, node: VirtualNodeIdentity) -> Object | None:
    """Return what it still prefers; None if all nodes of the target are equal to it."""
    left = _reduced_term(entry.get("preference") or {}, _reducer(node))
    return {**entry, "preference": left} if isinstance(left, dict) else None


def _choice(affinity: Object) -> Object:
    """Return what a node affinity says of virtual nodes."""
    found: Object = {}
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    chosen = [_virtual_part(term) for term in terms if any(term.get(p) for p in _PARTS)]
    if chosen and all(chosen):  # else some term accepts every virtual node
        found[_REQUIRED] = {"nodeSelectorTerms": chosen}

    preferred = [
        {**entry, "preference": part}
        for entry in affinity.get(_PREFERRED) or ()
        if (part := _virtual_part(entry.get("preference") or {}))
    ]
    return {**found, _PREFERRED: preferred} if preferred else found


def _virtual_part(term: Object) -> Object:
    parts = {part: [e for e in term.get(part) or () if _chooses(e)] for part in _PARTS}
    return {part: expressions for part, expressions in parts.items() if expressions}


def _chooses(expression: Object) -> bool:
    """Tell whether no real node may satisfy an expression as well."""
    if not _is_virtual(expression):
        return False

    values = expression.get("values") or ()
    named = expression.get("key") in (HOSTNAME, _NAME) and expression.get("operator") == "In"
    return not named or all(map(names.may_be_virtual_node, values))


def _of_pods(affinity: Object, keeps: Callable[[str], bool]) -> Object:
    """Return a pod affinity with the terms whose topology key is kept."""
    found: Object = dict(affinity)
    if required := affinity.get(_REQUIRED):
        found[_REQUIRED] = [term for term in required if keeps(_topology(term))]

    if preferred := affinity.get(_PREFERRED):
        found[_PREFERRED] = [
            entry for entry in preferred if keeps(_topology(entry.get("podAffinityTerm") or {}))
        ]

    return {field: value for field, value in found.items() if value}


def _topology(term: Object) -> str:
    return str(term.get("topologyKey"))
