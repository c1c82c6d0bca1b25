"""The identity of this cluster towards its targets, and which objects there are its own.

Chaperons and copies have the name of the cluster that they come from in a label, to be listed by,
and its UID in an annotation, because names may clash.
"""

from __future__ import annotations

from dataclasses import dataclass

from vnode.api import keys, names, objects
from vnode.api.objects import Object


@dataclass(frozen=True, slots=True)
class Identity:
    """This cluster as its targets know it: its name, and the UID of its kube-system namespace."""

    name: str
    uid: str

    @property
    def selector(self) -> str:
        """The label selector of what came from a cluster of this name; `owns` checks the UID."""
        return f"{keys.PARENT_CLUSTER_NAME}={self.name}"

    def owns(self, child: Object) -> bool:
        """Tell whether it came from here; one without a UID is Admiralty's: its name decides."""
        return objects.annotations(child).get(keys.PARENT_CLUSTER_UID, self.uid) == self.uid

    def surely_owns(self, child: Object) -> bool:
        """Tell whether it names this cluster's UID."""
        return objects.annotations(child).get(keys.PARENT_CLUSTER_UID) == self.uid

    def made(self, obj: Object) -> bool:
        """Tell whether this cluster created an object that was not found by `selector`."""
        return objects.labels(obj).get(keys.PARENT_CLUSTER_NAME) == self.name and self.owns(obj)


def parent_key(child: Object) -> str:
    """Return `namespace/name` of the object that a child was made of."""
    annotations = objects.annotations(child)
    return objects.join_key(
        annotations.get(keys.PARENT_NAMESPACE) or objects.namespace(child),
        annotations.get(keys.PARENT_NAME) or objects.name(child),
    )


def is_in_namespace_of_parent(chaperon: Object) -> bool:
    """Tell whether it stands in the namespace of the pod that it names, where sources make it."""
    return objects.split_key(parent_key(chaperon))[0] == objects.namespace(chaperon)


def is_chaperon_of(chaperon: Object, pod_key: str, pod_uid: str) -> bool:
    """Tell whether a chaperon is where its source makes that of a pod, and is called so.

    The label alone says nothing: whoever may make chaperons in one namespace of a target can write
    it. Those of Admiralty name no cluster, and the target's API server has chosen their names.
    """
    namespace, name = objects.split_key(pod_key)
    if (
        objects.labels(chaperon).get(keys.PARENT_UID, "") != pod_uid
        or objects.namespace(chaperon) != namespace
    ):
        return False

    if keys.PARENT_CLUSTER_UID in objects.annotations(chaperon):
        return objects.name(chaperon) == names.chaperon(name, pod_uid)

    return names.may_be_chaperon(objects.name(chaperon), name)


def is_made_for_parent(chaperon: Object) -> bool:
    """Tell whether a chaperon is that of the pod that it names, as `is_chaperon_of` does."""
    pod_uid = objects.labels(chaperon).get(keys.PARENT_UID, "")
    return is_chaperon_of(chaperon, parent_key(chaperon), pod_uid)
