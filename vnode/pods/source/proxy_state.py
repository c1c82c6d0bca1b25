"""Reads the state of proxy pods and of their chaperons, and trims bound proxies. Pure.

A bound proxy is kept without what only scheduling and the making of chaperons needs. A chaperon
whose pod is bound elsewhere is a loser; one whose pod is not there is an orphan, as far as the
informers show: only an answer of the API server itself settles that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vnode.api import changeable, keys, objects, placeholders, tolerance
from vnode.api.identity import is_chaperon_of
from vnode.api.objects import Object
from vnode.api.owners import owner_key
from vnode.pods import chaperons

NODE_INDEX: Final = "node"
CONTROLLER_INDEX: Final = "controller"
NAMESPACE_INDEX: Final = "namespace"

# Field of a trimmed object: the bytes of the annotation that it lacks, for they count in limits.
MANIFEST_BYTES: Final = "manifestBytes"

_KEPT_SPEC: Final = frozenset(
    {
        "nodeName",
        "schedulerName",
        "restartPolicy",
        "overhead",
        "priority",
        "affinity",
        "terminationGracePeriodSeconds",
        "readinessGates",
        "resourceClaims",
        "schedulingGroup",
    }
)


def node_of(pod: Object) -> Iterator[str]:
    """Yield the node that the pod is bound to, for an index; nothing while it is not bound."""
    if name := objects.node_name(pod):
        yield name


def is_pending(pod: Object | None, uid: str) -> bool:
    """Return whether a pod is that of the UID, and yet to be bound."""
    return (
        pod is not None
        and objects.uid(pod) == uid
        and not objects.is_terminating(pod)
        and not objects.node_name(pod)
    )


def controller_of(pod: Object) -> Iterator[str]:
    """Yield the pod's controlling owner, for an index of `OwnerKey`s."""
    if owner := owner_key(pod):
        yield owner


def namespace_of(pod: Object) -> Iterator[str]:
    """Yield the pod's namespace, for an index."""
    yield objects.namespace(pod)


INDEXES: Final = {
    NODE_INDEX: node_of,
    CONTROLLER_INDEX: controller_of,
    NAMESPACE_INDEX: namespace_of,
}
"""Those of an informer of proxy pods."""


def may_run_on(proxy: Object, chaperon: Object) -> bool:
    """Return whether the delegate of a terminating pod serves, and nobody wants it to end sooner.

    Whoever deletes the pod once more, with a shorter grace period, does.
    """
    if objects.is_terminating(chaperon) or has_lost_delegate(proxy, chaperon):
        return False

    serves = objects.is_ready(chaperon) and not objects.is_finished(proxy)
    return serves and asked_grace(proxy) is None


def is_loser(chaperon: Object, proxy: Object | None, node_name: str) -> bool:
    """Return whether a chaperon on the target of `node_name` has lost.

    Its pod is bound to another node, or is ending without ever having been bound. A placeholder has
    not lost, as long as its pod has not ended.
    """
    if proxy is None or is_orphan(chaperon, proxy):
        return False

    bound_to = objects.node_name(proxy)
    if not bound_to:
        return objects.is_terminating(proxy)

    return bound_to != node_name and node_name not in placeholders.of(proxy)


def is_orphan(chaperon: Object, proxy: Object | None) -> bool:
    """Return whether the pod is not there, or is a later one of the same name."""
    return proxy is None or not is_of(chaperon, proxy)


def is_of(chaperon: Object, pod: Object) -> bool:
    """Return whether a chaperon that names a pod of that key was made for this very pod."""
    if objects.labels(chaperon).get(keys.PARENT_UID) == objects.uid(pod):
        return True

    return is_chaperon_of(chaperon, objects.key(pod), objects.uid(pod))


def was_created_bound(pod: Object) -> bool:
    """Return whether a pod has named its node from the start, as a copy by `kubectl debug` does.

    A binding makes the API server write the condition PodScheduled.
    """
    return objects.condition(pod, "PodScheduled") is None


def has_lost_delegate(proxy: Object, chaperon: Object) -> bool:
    """Return whether the delegate of a bound pod is gone, or about to be, so that the pod must go.

    A deletion cannot be undone: the pod's owner replaces it at once, as it would on a node. A pod
    whose delegate had ended before has lost nothing, whoever cleans up there.
    """
    annotations = objects.annotations(chaperon)
    if keys.DELEGATE_DELETED in annotations:
        return True

    if keys.POD_MISSING_SINCE not in annotations and not objects.is_terminating(chaperon):
        return False

    return not (
        has_result(proxy, chaperon)
        or (_keeps_result(proxy, chaperon) and objects.is_finished(proxy))
    )


def has_result(proxy: Object, chaperon: Object) -> bool:
    """Return whether a chaperon says how the delegate of its pod has ended by itself.

    That is the pod's result, also once the delegate is gone, and the chaperon.
    """
    deleted = keys.DELEGATE_DELETED in objects.annotations(chaperon)
    return not deleted and objects.is_finished(chaperon) and _keeps_result(proxy, chaperon)


def _keeps_result(proxy: Object, chaperon: Object) -> bool:
    """Return whether the end of a delegate is told apart from that of one that was deleted.

    Admiralty does not say which came first. What is meant to run always mostly ends on its way out.
    """
    always = objects.spec(proxy).get("restartPolicy", "Always") == "Always"
    return not always or chaperons.is_held(chaperon)


def asked_grace(proxy: Object) -> int | None:
    """Return the grace period in seconds of a pod's deletion, if it is not the pod's own.

    `kubectl delete --now` makes it 1, `--force` 0.
    """
    own = objects.spec(proxy).get("terminationGracePeriodSeconds")
    asked = objects.metadata(proxy).get("deletionGracePeriodSeconds")
    if asked is None or asked == own or objects.is_finished(proxy):
        return None

    return int(asked)


def trim(pod: Object) -> Object:
    """Return what is kept of a proxy pod: all of it until it is bound."""
    if not objects.node_name(pod):
        return pod

    spec = objects.spec(pod)
    kept = {k: v for k, v in spec.items() if k in _KEPT_SPEC}
    kept |= changeable.trim(spec) | tolerance.trim(pod)

    annotations = objects.annotations(pod)
    metadata = {
        **objects.metadata(pod),
        "annotations": {k: v for k, v in annotations.items() if k != keys.SOURCE_POD_MANIFEST},
    }
    trimmed = {**pod, "metadata": metadata, "spec": kept}
    if (manifest := annotations.get(keys.SOURCE_POD_MANIFEST)) is not None:
        trimmed[MANIFEST_BYTES] = len(keys.SOURCE_POD_MANIFEST) + len(manifest.encode())

    return trimmed
