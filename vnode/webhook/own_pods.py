"""Keeps pods that are no proxies off virtual nodes, unless they are meant to go there. Pure.

A pod that tolerates every taint tolerates that of virtual nodes, too, and these look like the
largest and emptiest nodes there are. Operators of networks and storage, and cloud controllers,
tolerate everything, so that they run on nodes that are not ready yet; on a virtual node they never
would. So such a pod gets a required node affinity, unless it names virtual nodes itself.

In namespaces whose pods may go to targets, a pod may name a virtual node as any other, by its
hostname. Nodes of ours have no such label (`vnode.api.node_labels`), and another one in its place.
"""

from __future__ import annotations

from typing import Any, Final

from vnode.api import keys, names, objects, real_nodes
from vnode.api.objects import Object, Objects
from vnode.api.real_nodes import REQUIRED
from vnode.api.virtual_constraints import HOSTNAME
from vnode.webhook import election
from vnode.webhook.patch import Patch

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_AFFINITY: Final = ("spec", "affinity", "nodeAffinity")


def patch(pod: Object, *, may_go: bool) -> list[Object]:
    """Return the JSON patch for a pod that is no proxy; empty for nearly all.

    `may_go` says whether pods of its namespace may run in targets. Pods of DaemonSets stay as they
    are: one is made for each node that the DaemonSet's own template allows, and nowhere else.
    """
    spec, changes = objects.spec(pod), Patch(pod)
    if objects.node_name(pod) or election.owners(pod) & {"DaemonSet", "Node"}:
        return []

    if may_go:
        _name_nodes(spec, changes)

    if not changes.operations and real_nodes.is_lured(spec):
        changes.set(real_nodes.affinity(spec), "spec", "affinity")

    return changes.operations


def _name_nodes(spec: Object, changes: Patch) -> None:
    """Have the pod name virtual nodes by the label that these have."""
    name = (spec.get("nodeSelector") or {}).get(HOSTNAME)
    if name and names.may_be_virtual_node(name):
        changes.remove("spec", "nodeSelector", HOSTNAME)
        changes.set(name, "spec", "nodeSelector", keys.NODE_NAME)

    required = real_nodes.required_terms(spec)
    renamed = [each for term in required for each in _renamed(term)]
    if renamed != required:
        changes.set(renamed, *_AFFINITY, REQUIRED, "nodeSelectorTerms")

    preferred = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_PREFERRED) or []
    wishes = [
        {**entry, "preference": each}
        for entry in preferred
        for each in _renamed(entry.get("preference") or {})
    ]
    if wishes != preferred:
        changes.set(wishes, *_AFFINITY, _PREFERRED)


def _renamed(term: Object) -> Objects:
    """Return the terms of which one holds where this one did."""
    found: Objects = [term]
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        found = [_replaced(each, index, other) for each in found for other in _by_label(expression)]

    return [_flat(each) if each is not term else each for each in found]


def _by_label(expression: Object) -> list[Any]:
    """Return what may stand in an expression's place: one expression, or several that must hold."""
    values = expression.get("values") or []
    virtual = [value for value in values if names.may_be_virtual_node(value)]
    if expression.get("key") != HOSTNAME or not virtual:
        return [expression]

    named = {**expression, "key": keys.NODE_NAME, "values": virtual}
    real = [value for value in values if value not in virtual]
    if not real:
        return [named]

    other = {**expression, "values": real}
    return [named, other] if expression.get("operator") == "In" else [[named, other]]


def _replaced(term: Object, index: int, value: Any) -> Object:
    expressions = list(term["matchExpressions"])
    if expressions[index] == value:
        return term

    expressions[index] = value
    return {**term, "matchExpressions": expressions}


def _flat(term: Object) -> Object:
    """Return the term with expressions that came in a list beside the others."""
    listed = [each if isinstance(each, list) else [each] for each in term["matchExpressions"]]
    return {**term, "matchExpressions": [each for group in listed for each in group]}
