"""Tells which labels of a virtual node its Node object has, and which only vnode knows. Pure.

To the source's own controllers a label of a Node is a fact about a machine of the source. One that
names a place (host, zone, region, rack) would make an empty place of the virtual node, and pods
that are spread over places would wait for somebody to fill it. So the Node has these in an
annotation, where vnode's scheduler and placement policies read them; for kube-scheduler and all
others it has no such label.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from vnode.api import keys, objects, taints
from vnode.api.objects import TOTAL_ANNOTATION_SIZE, Object
from vnode.api.virtual_constraints import HOSTNAME

_HONOR: Final = "Honor"
# Places; roles, by which tools find the control plane's machines; and Karpenter's, which counts
# what has them for the limits of its own pools.
OLD_PLACES: Final = "failure-domain.beta.kubernetes.io"
_DOMAINS: Final = (OLD_PLACES, "node-role.kubernetes.io", "karpenter.sh")
TOPOLOGY: Final = "topology."
_MOST_KEYS: Final = 100  # of a pod; its Nodes' labels are compared with all that pods ever had

ALL: Final = "*"
"""In the annotation of a Target: the Node has all labels of the target."""


def is_of_place(key: str) -> bool:
    """Tell whether a label says where a machine is, or for what this cluster has it."""
    domain, _, name = key.rpartition("/")
    return bool(name) and (key == HOSTNAME or domain in _DOMAINS or domain.startswith(TOPOLOGY))


def is_listed(key: str, domains: Collection[str]) -> bool:
    """Tell whether a Target lets its nodes choose a label; all of them if it lists none.

    `domains` are keys, and what stands before the `/` of keys.
    """
    return not domains or key in domains or key.rpartition("/")[0] in domains


def is_shown(key: str, shown: Collection[str]) -> bool:
    """Tell whether a Target says that its Node has a label in any case."""
    return key in shown or ALL in shown


def split(
    labels: Mapping[str, str], shown: Collection[str], spread_over: Collection[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels of the Node itself, and those that only its annotation has.

    `shown` are keys that it has in any case, as its Target says; `spread_over` those over which
    pods of the source are spread.
    """
    hidden = {
        key: value
        for key, value in labels.items()
        if not is_shown(key, shown) and (is_of_place(key) or key in spread_over)
    }
    return {key: value for key, value in labels.items() if key not in hidden}, hidden


def record(hidden: Mapping[str, str]) -> dict[str, str]:
    """Return the annotation that holds labels which the Node itself does not have."""
    if not hidden:
        return {}

    return {keys.HIDDEN_LABELS: msgspec.json.encode(dict(hidden), order="sorted").decode()}


def hidden_of(node: Object) -> dict[str, str]:
    """Return the labels that only the annotation of a virtual Node has."""
    text = objects.annotations(node).get(keys.HIDDEN_LABELS)
    if not isinstance(text, str) or len(text) > TOTAL_ANNOTATION_SIZE:
        return {}

    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def of_node(node: Object) -> Mapping[str, str]:
    """Return all labels of a virtual node, with its own name as its hostname.

    The Node's own come first: a person may have added some.
    """
    hostname = objects.name(node)
    return {HOSTNAME: hostname, **hidden_of(node), **objects.labels(node)}


def spread_keys(pod: Object) -> frozenset[str]:
    """Return the topology keys over which a pod has to be spread, by the Nodes of this cluster.

    Left out are the constraints that heed taints, for which a virtual node is no place anyway, and
    pods that tolerate the taint of virtual nodes: these may be spread over them on purpose.
    """
    spec = objects.spec(pod)
    constraints: Any = spec.get("topologySpreadConstraints") or ()
    if not constraints or spec.get("schedulerName") == keys.PROXY_SCHEDULER:
        return frozenset()

    if any(taints.tolerates(t, keys.PROVIDER_TAINT) for t in spec.get("tolerations") or ()):
        return frozenset()

    found = (
        str(constraint.get("topologyKey"))
        for constraint in constraints
        if constraint.get("whenUnsatisfiable") == "DoNotSchedule"
        and constraint.get("nodeTaintsPolicy") != _HONOR
    )
    return frozenset(itertools.islice(found, _MOST_KEYS))
