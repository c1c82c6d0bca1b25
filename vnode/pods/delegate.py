"""Builds delegate pods from PodChaperons, and decides when they are made anew or deleted. Pure.

The chaperon is the only channel between the clusters. Its spec, labels and annotations become the
pod's; what comes back is in `delegate_report`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Final

from vnode.api import (
    changeable,
    keys,
    kinds,
    objects,
    permissions,
    real_nodes,
    taints,
)
from vnode.api.objects import Object
from vnode.pods import (
    annotation_merge,
    changes,
    given_annotations,
    rejections,
    results,
)

_MOST_DIGITS: Final = 10  # of a number of seconds

RECREATE_AFTER: Final = timedelta(seconds=60)
"""How long a source has to react to a lost delegate before the target replaces it.

docs/admiralty-contract.md, section 9.
"""

_PARENT: Final = (keys.PARENT_NAMESPACE, keys.PARENT_NAME, keys.PARENT_CLUSTER_UID)

_MARKS: Final = (keys.PARENT_UID, keys.PARENT_CLUSTER_NAME, keys.PARENT_CLUSTER_UID)


def build(chaperon: Object, *, goes_on: bool = False) -> Object:
    """Build the delegate pod of a chaperon: same name, labels, annotations and spec, owned by it.

    What an earlier delegate had by the target's own doing stays away from this one. Ephemeral
    containers are not for new pods; that they are missing shows in the record. With `goes_on` it
    still asks to be sent on, which the webhook obeys. A pod that tolerates everything is kept off
    virtual nodes: it would come there without anybody having asked for it.
    """
    metadata, spec = objects.metadata(chaperon), _off_virtual_nodes(objects.spec(chaperon))
    stays = {keys.SOURCE_POD_MANIFEST, keys.REPORTED, keys.PREEMPTED, keys.REJECTED}
    stays |= {keys.GANG_MARK, keys.GANG_REFUSED, keys.SOURCE_DIGEST}
    stays |= set() if goes_on else {keys.FORWARD}
    ours = {k: v for k, v in objects.annotations(chaperon).items() if not keys.is_foreign(k)}
    annotations = given_annotations.of(chaperon) | {k: ours[k] for k in ours.keys() - stays}
    spec = {k: v for k, v in spec.items() if k != changeable.EPHEMERAL}
    if (done := changes.of_new_pod(chaperon)) != changes.record(chaperon):
        annotations = {**annotations, keys.SENT: annotation_merge.text(done)}

    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": objects.name(chaperon),
            "namespace": objects.namespace(chaperon),
            "labels": metadata.get("labels") or {},
            "annotations": annotations,
            "ownerReferences": [_owner(chaperon)],
        },
        "spec": spec,
    }


def _owner(chaperon: Object) -> Object:
    return {
        "apiVersion": kinds.POD_CHAPERONS.api_version,
        "kind": kinds.POD_CHAPERONS.kind,
        "name": objects.name(chaperon),
        "uid": objects.uid(chaperon),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _off_virtual_nodes(spec: Object) -> Object:
    """Add a node affinity for real nodes to the spec, unless our taint keeps the pod on them."""
    if taints.untolerated([keys.PROVIDER_TAINT], spec.get("tolerations") or ()):
        return spec

    return {**spec, "affinity": real_nodes.affinity(spec)}


def is_adoptable(chaperon: Object, pod: Object) -> bool:
    """Tell whether a pod without an owner is the delegate of a chaperon: its reference was removed.

    Nobody would end it any more. Its name is the chaperon's, and it was made for the same pod.
    Where vnode does not hold the chaperon, it was let go: an uninstall that keeps delegates takes
    the finalizer off, and then the owner.
    """
    if keys.DELEGATE_FINALIZER not in objects.finalizers(chaperon):
        return False

    uid = objects.labels(pod).get(keys.PARENT_UID)
    ours, theirs = objects.annotations(chaperon), objects.annotations(pod)
    if objects.controller_reference(pod) or not uid or keys.PARENT_NAME not in ours:
        return False

    is_same = all(ours.get(key) == theirs.get(key) for key in _PARENT)
    return is_same and uid == objects.labels(chaperon).get(keys.PARENT_UID)


def lost_marks(chaperon: Object, pod: Object) -> Object:
    """Return what of the metadata of a delegate, as a patch, somebody has removed; mostly nothing.

    Those are the labels by which delegates are listed and selected, and the reference to the owner.
    """
    lost: Object = {}
    wanted, present = objects.labels(chaperon), objects.labels(pod)
    labels = {k: wanted[k] for k in _MARKS if wanted.get(k) and present.get(k) != wanted[k]}
    if labels:
        lost["labels"] = labels

    if objects.controller_uid(pod) != objects.uid(chaperon):
        others = objects.metadata(pod).get("ownerReferences") or []
        lost["ownerReferences"] = [*others, _owner(chaperon)]

    return lost


class Absence(Enum):
    """What to do about a chaperon that has no delegate."""

    CREATE = auto()
    MARK = auto()  # write down since when it is missing, for the source to react
    WAIT = auto()


def on_absence(chaperon: Object, now: datetime) -> tuple[Absence, timedelta]:
    """Decide what to do about a chaperon without a delegate, and when to look again.

    A delegate that was never there is created, and, after a back-off, one that its kubelet has
    rejected. One that was there and is gone (evicted, deleted) is for the source to judge; if the
    source is silent for RECREATE_AFTER, a pod that is meant to run always is created again, and one
    that was never allowed, since it cannot have run. One that had ended by itself (evicted by its
    kubelet, too late) is not: its end is the pod's result.
    """
    if (rejected := rejections.pending(chaperon)) is not None:
        wait = rejected.left(now)
        return (Absence.WAIT if wait else Absence.CREATE), wait

    if not objects.status(chaperon).get("phase"):
        return Absence.CREATE, timedelta()

    missing = objects.annotations(chaperon).get(keys.POD_MISSING_SINCE)
    since = objects.parse_timestamp(missing) if missing else None
    if since is None:
        return Absence.MARK, RECREATE_AFTER

    left = since + RECREATE_AFTER - now
    if left > timedelta():
        return Absence.WAIT, left

    always = objects.spec(chaperon).get("restartPolicy", "Always") == "Always"
    may_run = always or not permissions.is_allowed(chaperon)
    again = may_run and not results.is_told(chaperon)
    return (Absence.CREATE if again else Absence.WAIT), timedelta()


def may_have_run(chaperon: Object, pod: Object) -> bool:
    """Tell whether a delegate may have run: one that was never allowed was never bound.

    Nothing on the chaperon says that a message allowed it, until the binding is reported.
    """
    return permissions.is_allowed(chaperon) or bool(objects.node_name(pod))


def asked_grace(chaperon: Object, pod: Object) -> int | None:
    """Return the grace period in seconds that the source asks for; None for the pod's own.

    A value that is no number of seconds, or is not shorter than what a terminating pod has left,
    counts as none: a deletion can only be brought forward.
    """
    text = objects.annotations(chaperon).get(keys.GRACE_PERIOD, "")
    if not (text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS):
        return None

    grace, known = int(text), objects.metadata(pod).get("deletionGracePeriodSeconds")
    return grace if known is None or grace < known else None
