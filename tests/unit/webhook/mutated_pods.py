"""Pods, and what the webhook makes proxies of."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch

from tests.permitted import MANIFESTS
from vnode.api import keys
from vnode.planning.failover import Failover
from vnode.webhook import mutate

FINALIZER = keys.PREFIX + "default-c2"


BASE = [
    {"key": "virtual-kubelet.io/provider", "value": "admiralty"},
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
]


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "annotations": annotations or {}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def proxied(
    original: dict[str, Any],
    finalizers: tuple[str, ...] = (FINALIZER,),
    *,
    failover: Failover | None = None,
) -> dict[str, Any]:
    before = copy.deepcopy(original)
    patch = mutate.proxy_patch(original, "default", finalizers, MANIFESTS, failover=failover)
    patched: dict[str, Any] = jsonpatch.apply_patch(original, patch)
    assert original == before
    return patched
