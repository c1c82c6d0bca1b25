"""Policies and pods for the tests of override policies."""

from __future__ import annotations

import copy
from typing import Any

from vnode.api import kinds
from vnode.api.objects import Object


def policy(
    *rules: Object,
    name: str = "mirror",
    namespace: str = "ns",
    selector: Object | None = None,
    **spec: Any,
) -> Object:
    """Make a policy for all pods of a namespace; a cluster's own if that is ""."""
    kind = kinds.OVERRIDE_POLICIES if namespace else kinds.CLUSTER_OVERRIDE_POLICIES
    metadata = {"name": name, "uid": name, "generation": 1}
    if namespace:
        metadata["namespace"] = namespace

    body = {"selector": selector or {}, "rules": list(rules), **spec}
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    return copy.deepcopy({**head, "metadata": metadata, "spec": body})


def patch(op: str, path: str, **fields: Any) -> Object:
    """Make a rule of one operation."""
    return {"patches": [{"op": op, "path": path, **fields}]}


def a_pod(**spec: Any) -> Object:
    """Make a pod as rules see it."""
    containers = [
        {"name": "web", "image": "nginx:1", "command": ["run"], "env": [{"name": "A"}]},
        {"name": "log", "image": "quay.io/team/log:2"},
    ]
    return {
        "metadata": {"labels": {"app": "web"}, "annotations": {"note": "1"}},
        "spec": {"containers": containers, **spec},
    }
