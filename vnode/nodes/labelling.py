"""Decides which labels a virtual Node has: its own, and those of its target. No I/O.

`vnode.nodes.claims` says which a target may choose.
`vnode.api.node_labels` says which of the target's a Node object must not have, for the sake of the
source's own pods and Services; these go into an annotation.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Mapping
from typing import Final

from vnode.api import keys, names, node_labels, objects, virtual_constraints
from vnode.api.objects import Object
from vnode.api.shapes import MOST_LABELS
from vnode.api.target_key import TargetKey
from vnode.api.virtual_constraints import HOSTNAME
from vnode.nodes import claims
from vnode.nodes.coexistence import ROLE

_BASE: Final = {
    "type": "virtual-kubelet",
    "kubernetes.io/role": "cluster",
    "alpha.service-controller.kubernetes.io/exclude-balancer": "true",
    "node.kubernetes.io/exclude-from-external-load-balancers": "true",
    # Targets that are lost together are no disruption of this cluster: its own dead nodes are
    # evicted as ever, and so are lost virtual nodes.
    "node.kubernetes.io/exclude-disruption": "true",
}
_NONE: Final[Mapping[str, str]] = types.MappingProxyType({})


def at_first(target: TargetKey, role: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a new Node; `role` keeps it out of topology-aware routing."""
    return {**_BASE, **role, **_identity(target)}


def of_target(
    shared: Mapping[str, str],
    excluded: Callable[[str], bool] | None,
    inventory: Mapping[str, str] = _NONE,
    *,
    domains: Collection[str] = (),
) -> dict[str, str]:
    """Return the labels that describe a target: common ones of its nodes, and of its inventory.

    `excluded` tells for "key=value" which of these are left out. So are those that `claims` leaves
    to others than a target, and those of no domain in `domains`, if there are any. So is the
    hostname of a target's only node: that of a virtual node is its own name.
    """
    claimed = sorted(key for key, value in shared.items() if claims.may_have(key, value, domains))
    common = {
        key: shared[key]
        for key in claimed[:MOST_LABELS]  # before they are matched, which takes longer
        if not (excluded and excluded(f"{key}={shared[key]}"))
    }
    described = {
        key: value
        for key, value in inventory.items()
        if not claims.isolates(key) and not (excluded and excluded(f"{key}={value}"))
    }
    return {**common, **described}


def split(
    target: TargetKey,
    described: Mapping[str, str],
    *,
    role: Mapping[str, str] = _NONE,
    shown: Collection[str] = (),
    spread_over: Collection[str] = (),
) -> tuple[dict[str, str], dict[str, str]]:
    """Return all labels that the Node has, and those of its target that it hides.

    Those of ours win: others tell a virtual node from a machine by them.
    """
    others = {key: value for key, value in described.items() if key not in _BASE}
    own, hidden = node_labels.split(others, shown, spread_over)
    if node_labels.is_shown(HOSTNAME, shown) and len(target.node_name) <= names.LABEL_LIMIT:
        own[HOSTNAME] = target.node_name

    identity = _identity(target)
    left = {key: value for key, value in hidden.items() if key not in identity}
    return {**own, **_BASE, **role, **identity}, left


def left_over(
    node: Object, wanted: Mapping[str, str], excluded: Callable[[str], bool] | None
) -> dict[str, None]:
    """Return the labels that a Node has from its creation, so that no apply takes them away.

    Older agents created Nodes with a hostname, which made an empty place of each; and whoever
    excludes the label of a role wants it gone.
    """
    present = objects.labels(node)
    found: dict[str, None] = {}
    if HOSTNAME not in wanted and present.get(HOSTNAME) in (objects.name(node), ""):
        found[HOSTNAME] = None

    if ROLE in present and ROLE not in wanted and excluded and excluded(f"{ROLE}="):
        found[ROLE] = None

    return found


def _identity(target: TargetKey) -> dict[str, str]:
    """Return the labels that say which Target a Node stands for; no label of it replaces them."""
    known = virtual_constraints.identity_labels(target.namespace, target.name)
    name = target.node_name
    return {**known, keys.NODE_NAME: name} if len(name) <= names.LABEL_LIMIT else known
