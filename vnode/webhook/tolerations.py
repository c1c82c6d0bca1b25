"""Builds the tolerations of a proxy pod: how long it outlives a failed virtual node. Pure.

A virtual node is not ready when its target is lost, which its agent says. It is unreachable when
nobody renews its Lease: then all agents of this cluster are down, and the target may run on. So a
proxy tolerates the latter without end, and what its user says of either failure is meant of the
former (docs/decisions/0066).

An API server gives pods that have none 300 s before the webhook sees them. Where a placement policy
says what becomes of pods whose cluster is lost, these become tolerations without an end, unless the
user has said when (docs/decisions/0051).
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects, taints
from vnode.api.objects import Object

_NOT_READY, _UNREACHABLE = keys.NODE_FAILURES


def _toleration(key: str, **fields: int) -> Object:
    return {"key": key, "operator": "Exists", "effect": taints.NO_EXECUTE, **fields}


# The toleration that an API server gives to pods that have none (DefaultTolerationSeconds).
_DEFAULT: Final = _toleration(_NOT_READY, tolerationSeconds=300)
_DEFAULT_OF_OUTAGE: Final = _toleration(_UNREACHABLE, tolerationSeconds=300)
_WITHOUT_END: Final = _toleration(_NOT_READY)
_OUTAGE_WITHOUT_END: Final = _toleration(_UNREACHABLE)
_TOLERATIONS: Final[list[Object]] = [
    {"key": keys.PROVIDER_LABEL, "value": keys.PROVIDER},
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists"},
    _OUTAGE_WITHOUT_END,  # before all others: the first one that matches counts
]


def of_proxy(pod: Object, wanted: list[Object]) -> list[Object]:
    """Return every proxy's tolerations, those asked for, and how long it outlives a lost target.

    The last come from the pod: the user's, or the API server's default of 300 s.
    """
    named = {toleration.get("key") for toleration in wanted}
    for_failures = [
        toleration
        for toleration in objects.spec(pod).get("tolerations") or ()
        if toleration.get("key") in keys.NODE_FAILURES and toleration.get("key") not in named
    ]
    return [*_TOLERATIONS, *_of_lost_targets([*wanted, *for_failures])]


def _of_lost_targets(tolerations: list[Object]) -> list[Object]:
    """Take what is said of nodes that are unreachable for what is meant of those not ready."""
    said = [toleration for toleration in tolerations if _is_of_outages(toleration)]
    others = [toleration for toleration in tolerations if not _is_of_outages(toleration)]
    ours = (_DEFAULT_OF_OUTAGE, _OUTAGE_WITHOUT_END)
    meant = [{**each, "key": _NOT_READY} for each in said if each not in ours]
    if not meant or any(each.get("key") == _NOT_READY and each != _DEFAULT for each in others):
        return others

    return [*(each for each in others if each != _DEFAULT), *meant]


def _is_of_outages(toleration: Object) -> bool:
    return (toleration.get("key"), toleration.get("effect")) == (_UNREACHABLE, taints.NO_EXECUTE)


def say_when(tolerations: list[Object], *, known: bool) -> bool:
    """Tell whether a pod's user has said how long it outlives a lost target.

    Where the pod is `known`, tolerations without an end may be ours.
    """
    ours = [_DEFAULT, _OUTAGE_WITHOUT_END, *([_WITHOUT_END] if known else ())]
    return any(
        taints.tolerates(toleration, {"key": key, "effect": taints.NO_EXECUTE})
        for toleration in tolerations
        for key in keys.NODE_FAILURES
        if toleration not in ours
    )


def without_end(tolerations: list[Object]) -> list[Object]:
    """Return tolerations by which a pod stays on a lost node."""
    ours = (_DEFAULT, _WITHOUT_END)
    return [*(toleration for toleration in tolerations if toleration not in ours), _WITHOUT_END]
