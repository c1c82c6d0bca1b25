"""The identity of this cluster towards its targets, and which objects there are its own.

Chaperons and copies have the name of the cluster that they come from in a label, to be listed by,
and its UID in an annotation, because names may clash. Chaperons and delegates have the UID in a
label, too, for Services and policies to select them by.
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

    @property
    def labels(self) -> dict[str, str]:
        """The labels of what this cluster sends to targets, by which its own pods are selected."""
        return {keys.PARENT_CLUSTER_NAME: self.name, keys.PARENT_CLUSTER_UID: self.uid}

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


def possible_parents(chaperon: Object) -> set[str]:
    """Return the keys of the pods of which it may be: the one that it names, and by its own name.

    Mostly they are one. Somebody may have changed what it names.
    """
    named = objects.join_key(
        objects.namespace(chaperon), names.pod_of_chaperon(objects.name(chaperon))
    )
    return {parent_key(chaperon), named}


def is_in_namespace_of_parent(chaperon: Object) -> bool:
    """Tell whether it stands in the namespace of the pod that it names, where sources make it."""
    return objects.split_key(parent_key(chaperon))[0] == objects.namespace(chaperon)


def is_chaperon_of(chaperon: Object, pod_key: str, pod_uid: str) -> bool:
    """Tell whether a chaperon is where its source makes that of a pod, and is called so.

    The label alone says nothing: whoever may make chaperons in one namespace of a target can write
    it. Nor does its absence, since anybody there may take it off; the name follows from the pod's
    UID. Those of Admiralty name no cluster, and the target's API server has chosen their names.
    """
    namespace, name = objects.split_key(pod_key)
    if objects.namespace(chaperon) != namespace:
        return False

    labelled = objects.labels(chaperon).get(keys.PARENT_UID, "") == pod_uid
    if objects.name(chaperon) in names.chaperons(name, pod_uid):
        return labelled or _names_parent(chaperon, pod_key)

    is_admiraltys = keys.PARENT_CLUSTER_UID not in objects.annotations(chaperon)
    return is_admiraltys and labelled and names.may_be_chaperon(objects.name(chaperon), name)


def is_made_for_parent(chaperon: Object) -> bool:
    """Tell whether a chaperon is that of the pod that it names, as `is_chaperon_of` does.

    One whose label was taken off is that of a pod of the name that it gives.
    """
    key, pod_uid = parent_key(chaperon), objects.labels(chaperon).get(keys.PARENT_UID, "")
    if pod_uid:
        return is_chaperon_of(chaperon, key, pod_uid)

    own_name = names.may_be_own_chaperon(objects.name(chaperon), objects.split_key(key)[1])
    is_ours = keys.PARENT_CLUSTER_UID in objects.annotations(chaperon)
    return is_ours and own_name and _names_parent(chaperon, key)


def _names_parent(chaperon: Object, pod_key: str) -> bool:
    """Tell whether annotations name that pod, which must be in the chaperon's namespace."""
    annotations = objects.annotations(chaperon)
    named = annotations.get(keys.PARENT_NAMESPACE), annotations.get(keys.PARENT_NAME)
    return named == objects.split_key(pod_key) and named[0] == objects.namespace(chaperon)
