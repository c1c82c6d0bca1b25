"""Tells for how long a pod stays on a node that is lost, by its tolerations. Pure.

A virtual node whose target is lost is not ready, as its agent says. It is `unreachable` only if no
agent renews its Lease, which says nothing about the target.
"""

from __future__ import annotations

from typing import Final

from vnode.api import keys, objects, taints
from vnode.api.objects import Object

NOT_READY: Final[Object] = {"key": keys.NODE_FAILURES[0], "effect": taints.NO_EXECUTE}


def of_lost_node(pod: Object) -> float | None:
    """Return the seconds after which Kubernetes evicts a pod from a node that is not ready.

    None if it never does. As there, the first toleration of the taint counts.
    """
    toleration = _first(pod)
    if toleration is None:
        return 0.0

    seconds = toleration.get("tolerationSeconds")
    return None if seconds is None else float(max(seconds, 0))


def trim(pod: Object) -> Object:
    """Return what `of_lost_node` reads, as part of a PodSpec."""
    toleration = _first(pod)
    return {} if toleration is None else {"tolerations": [toleration]}


def _first(pod: Object) -> Object | None:
    for toleration in objects.spec(pod).get("tolerations") or ():
        if taints.tolerates(toleration, NOT_READY):
            found: Object = toleration
            return found

    return None
