"""Decides whether a pod that is being created asks to be a proxy pod, or is never one. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object

_MIRROR: Final = "kubernetes.io/config.mirror"
_DELEGATE: Final = kinds.POD_CHAPERONS.kind


def elects_itself(pod: Object) -> bool:
    """Tell whether the pod asks to be a proxy, whatever its namespace says.

    A delegate asks by `forward`, which our own agent leaves on it only where it can go on.
    """
    annotations = objects.annotations(pod)
    return keys.ELECT in annotations or (keys.FORWARD in annotations and _DELEGATE in owners(pod))


def is_exempt(pod: Object) -> bool:
    """Tell whether a pod is never a proxy, even if its namespace is elected.

    That is a pod that opts out, one that has a node already (mirror pods are of this sort), one of
    a DaemonSet, which is made for one node of this cluster; and a delegate, unless elected one by
    one: in a cluster that is its own target, a namespace's election would send it round for ever.
    """
    annotations = objects.annotations(pod)
    if keys.NO_ELECT in annotations or _MIRROR in annotations or objects.node_name(pod):
        return True

    found = owners(pod)
    return "DaemonSet" in found or (_DELEGATE in found and not elects_itself(pod))


def owners(pod: Object) -> set[str]:
    """Return the kinds of the objects that own the pod."""
    references = objects.metadata(pod).get("ownerReferences") or ()
    return {str(owner.get("kind")) for owner in references}
