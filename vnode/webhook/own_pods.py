"""Keeps pods that are no proxies off virtual nodes, unless they are meant to go there. Pure.

A pod that tolerates every taint tolerates that of virtual nodes, too, and these look like the
largest and emptiest nodes there are. Operators of networks and storage, and cloud controllers,
tolerate everything, so that they run on nodes that are not ready yet; on a virtual node they never
would. So such a pod gets a required node affinity, unless it names virtual nodes itself.

In namespaces whose pods may go to targets, a pod may name a virtual node as any other, by its
hostname. Nodes of ours have no such label (`vnode.api.node_labels`), and another one in its place.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Final

import msgspec

from vnode.api import keys, names, objects, real_nodes
from vnode.api.errors import ConfigError
from vnode.api.objects import Object, Objects
from vnode.api.real_nodes import REQUIRED
from vnode.api.virtual_constraints import HOSTNAME
from vnode.webhook import election
from vnode.webhook.patch import Patch

_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_AFFINITY: Final = ("spec", "affinity", "nodeAffinity")
MOST_REPEATED: Final = 64 * 1024
"""Bytes of JSON that several terms may have in one's place: each expression doubles them."""


def patch(pod: Object, *, may_go: bool) -> list[Object]:
    """Return the JSON patch for a pod that is no proxy; empty for nearly all.

    `may_go` says whether pods of its namespace may run in targets. Pods of DaemonSets stay as they
    are: one is made for each node that the DaemonSet's own template allows, and nowhere else.
    ConfigError if the pod names virtual nodes beside others so often that its terms would be too
    many.
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
    renamed = [each for terms in _renamed(required) for each in terms]
    if renamed != required:
        changes.set(renamed, *_AFFINITY, REQUIRED, "nodeSelectorTerms")

    preferred = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_PREFERRED) or []
    preferences = _renamed([entry.get("preference") or {} for entry in preferred])
    wishes = [
        {**entry, "preference": each}
        for entry, terms in zip(preferred, preferences, strict=True)
        for each in terms
    ]
    if wishes != preferred:
        changes.set(wishes, *_AFFINITY, _PREFERRED)


def _renamed(terms: Objects) -> list[Objects]:
    """Return, for each term, those of which one holds where it did; ConfigError if too many."""
    choices = [list(map(_by_label, term.get("matchExpressions") or ())) for term in terms]
    repeated = 0
    for term, choice in zip(terms, choices, strict=True):
        if (count := math.prod(map(len, choice))) > 1:
            repeated += count * len(msgspec.json.encode(term))

        if repeated > MOST_REPEATED:
            raise ConfigError(
                "spec.affinity.nodeAffinity names virtual nodes beside others too often: name "
                "either in a term"
            )

    return [_chosen(term, choice) for term, choice in zip(terms, choices, strict=True)]


def _chosen(term: Object, choice: list[list[Objects]]) -> Objects:
    """Return a term for each way to choose what stands in its expressions' places."""
    expressions = term.get("matchExpressions") or []
    if choice == [[[each]] for each in expressions]:
        return [term]

    return [
        {**term, "matchExpressions": [each for listed in chosen for each in listed]}
        for chosen in product(*choice)
    ]


def _by_label(expression: Object) -> list[Objects]:
    """Return what may stand in an expression's place, each time expressions that must all hold."""
    values = expression.get("values") or []
    virtual = [value for value in values if names.may_be_virtual_node(value)]
    if expression.get("key") != HOSTNAME or not virtual:
        return [[expression]]

    named = {**expression, "key": keys.NODE_NAME, "values": virtual}
    real = [value for value in values if not names.may_be_virtual_node(value)]
    if not real:
        return [[named]]

    other = {**expression, "values": real}
    return [[named], [other]] if expression.get("operator") == "In" else [[named, other]]
