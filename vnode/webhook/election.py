"""Decides whether a pod that is being created asks to be a proxy pod, or is never one. Pure."""

from __future__ import annotations

from typing import Final

from vnode.api import keys, kinds, objects
from vnode.api.objects import Object
from vnode.api.virtual_constraints import HOSTNAME

_MIRROR: Final = "kubernetes.io/config.mirror"
_DELEGATE: Final = kinds.POD_CHAPERONS.kind


def elects_itself(pod: Object) -> bool:
    """Tell whether the pod asks to be a proxy, whatever its namespace says.

    A delegate asks by `forward`, which our own agent leaves on it only where it can go on.
    """
    annotations = objects.annotations(pod)
    return keys.ELECT in annotations or (keys.FORWARD in annotations and _DELEGATE in owners(pod))


def is_left_alone(pod: Object) -> bool:
    """Tell whether a pod is no proxy, and stays as it is, whatever its namespace says.

    API servers do not even show us such a pod, by the `matchConditions` of our manifest, which say
    the same in CEL. It is one that has a node, or is made for a certain one; and a delegate that is
    to stay, unless it may have to be kept off virtual nodes (`vnode.webhook.own_pods`).
    """
    found = owners(pod)
    if objects.node_name(pod) or found & {"DaemonSet", "Node"}:
        return True

    annotations = objects.annotations(pod)
    asks = keys.ELECT in annotations or keys.FORWARD in annotations
    return _DELEGATE in found and not asks and not _is_about_nodes(objects.spec(pod))


def _is_about_nodes(spec: Object) -> bool:
    """Tell whether a pod chooses nodes otherwise than by labels of its own, or tolerates all."""
    if HOSTNAME in (spec.get("nodeSelector") or {}):
        return True

    if (spec.get("affinity") or {}).get("nodeAffinity") is not None:
        return True

    return any(not toleration.get("key") for toleration in spec.get("tolerations") or ())


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
