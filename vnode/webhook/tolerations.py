"""Builds the tolerations of a proxy pod: how long it outlives a failed virtual node. Pure.

An API server gives pods that have none 300 s before the webhook sees them. Where a placement policy
says what becomes of pods whose cluster is lost, these become tolerations without an end, unless the
user has said when (docs/decisions/0051).
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects, taints
from vnode.api.objects import Object

# The tolerations that an API server gives to pods that have none (DefaultTolerationSeconds).
_DEFAULTS: Final[list[Object]] = [
    {"key": key, "operator": "Exists", "effect": taints.NO_EXECUTE, "tolerationSeconds": 300}
    for key in keys.NODE_FAILURES
]
_WITHOUT_END: Final[list[Object]] = [
    {k: v for k, v in toleration.items() if k != "tolerationSeconds"} for toleration in _DEFAULTS
]
_TOLERATIONS: Final[list[Object]] = [
    {"key": keys.PROVIDER_LABEL, "value": keys.PROVIDER},
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists"},
]


def of_proxy(pod: Object, wanted: list[Object]) -> list[Object]:
    """Return every proxy's tolerations, those asked for, and how long it outlives a failed node.

    The last come from the pod: the user's, or the API server's default of 300 s.
    """
    named = {toleration.get("key") for toleration in wanted}
    for_failures = [
        toleration
        for toleration in objects.spec(pod).get("tolerations") or ()
        if toleration.get("key") in keys.NODE_FAILURES and toleration.get("key") not in named
    ]
    return [*_TOLERATIONS, *wanted, *for_failures]


def say_when(tolerations: list[Object], *, known: bool) -> bool:
    """Tell whether a pod's user has said how long it outlives a failed node.

    Where the pod is `known`, tolerations without an end may be ours.
    """
    ours = [*_DEFAULTS, *(_WITHOUT_END if known else ())]
    return any(
        taints.tolerates(toleration, {"key": key, "effect": taints.NO_EXECUTE})
        for toleration in tolerations
        for key in keys.NODE_FAILURES
        if toleration not in ours
    )


def without_end(tolerations: list[Object]) -> list[Object]:
    """Return tolerations by which Kubernetes does not evict a pod from a failed node."""
    ours = [*_DEFAULTS, *_WITHOUT_END]
    return [*(toleration for toleration in tolerations if toleration not in ours), *_WITHOUT_END]
