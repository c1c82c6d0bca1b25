"""Finds the view of a resource of `vnode get` by its name, and imports no other."""

from __future__ import annotations

import importlib
from typing import Final

from vnode.cli.get.views import View

_MODULES: Final = {
    "targets": "vnode.cli.get.cluster_views",
    "targetsets": "vnode.cli.get.set_views",
    "nodes": "vnode.cli.get.cluster_views",
    "pods": "vnode.cli.get.cluster_views",
    "sources": "vnode.cli.get.cluster_views",
    "policies": "vnode.cli.get.policy_views",
    "overrides": "vnode.cli.get.policy_views",
    "rebalances": "vnode.cli.get.policy_views",
    "tokens": "vnode.cli.get.token_views",
}
NAMES: Final = tuple(_MODULES)
ALIASES: Final = {
    "target": "targets",
    "tg": "targets",
    "targetset": "targetsets",
    "clustertargetset": "targetsets",
    "clustertargetsets": "targetsets",
    "ts": "targetsets",
    "cts": "targetsets",
    "node": "nodes",
    "no": "nodes",
    "pod": "pods",
    "po": "pods",
    "source": "sources",
    "policy": "policies",
    "placementpolicies": "policies",
    "plpol": "policies",
    "override": "overrides",
    "overridepolicies": "overrides",
    "ovpol": "overrides",
    "rebalance": "rebalances",
    "rebal": "rebalances",
    "token": "tokens",
    "authtokenrequests": "tokens",
    "atr": "tokens",
}


def view(name: str) -> View:
    """Return the view of a resource, one of NAMES."""
    found: tuple[View, ...] = importlib.import_module(_MODULES[name]).VIEWS
    return next(each for each in found if each.name == name)
