"""Builds delegate pods from PodChaperons, and reports from delegates: decisions of a target. Pure.

The chaperon is the only channel between the clusters. Its spec, labels and annotations become the
pod's; the pod's status and the annotations of others become the chaperon's.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    scheduled_condition,
    taints,
)
from vnode.api.objects import Object, Objects
from vnode.pods import (
    annotation_merge,
    changes,
    event_record,
    given_annotations,
    observed_generation,
    rejections,
    results,
    status_size,
    travel_size,
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


@dataclass(frozen=True, slots=True)
class DelegateReport:
    """Merge patches that bring a chaperon up to date with its delegate; empty where it is."""

    metadata: Object
    status: Object

    @property
    def has_events(self) -> bool:
        """Whether the list of Events is among the changes."""
        return event_record.FIELD in objects.status(self.status)

    @property
    def has_only_events(self) -> bool:
        """Whether the list of Events is all that has changed of the status."""
        return objects.status(self.status).keys() == {event_record.FIELD}


def report(
    chaperon: Object,
    pod: Object,
    events: Objects | None = None,
    *,
    ended_first: bool | None = None,
    tight: bool = False,
) -> DelegateReport:
    """Build the patches for the chaperon of a delegate that exists.

    Annotations of vnode and Admiralty on the chaperon stay its own; all others become the pod's,
    but for those that the source has changed and the pod does not have yet. A reservation is
    withdrawn by a rejection that is newer, that is, one not reported yet: a pod that was rejected,
    and then found a place, is called unscheduled until it is bound. A pod of which nothing is known
    but that it exists is not worth a write. The deletion of a pod is noted: its containers may yet
    end well, which is not the same as having finished; `ended_first` is the `seen` of
    `results.had_ended`. That note stays until the status is of the next delegate, or its end would
    seem to be a result. Of a delegate that came after the result nothing is told. `events` is
    the list of its Events, which the status then has (`event_record`). Of a pod with too many
    annotations (`travel_size`) the chaperon keeps those that it has. It is `tight` if the API
    server has refused the chaperon for its size: then the status is shortened.
    """
    if results.is_late(chaperon, pod):
        return DelegateReport({}, {})

    known = objects.annotations(chaperon)
    status = _status_changes(chaperon, pod, events, tight=tight)
    wanted = {k: v for k, v in known.items() if not keys.is_foreign(k)}
    wanted.pop(keys.POD_MISSING_SINCE, None)
    if not objects.is_terminating(pod):
        if not (status and objects.is_finished(chaperon)):
            wanted.pop(keys.DELEGATE_DELETED, None)
    elif not objects.is_finished(chaperon) and not results.had_ended(pod, ended_first):
        wanted[keys.DELEGATE_DELETED] = "true"

    if (noted := rejections.with_delegate(chaperon, pod)) is not None:
        wanted[keys.REJECTED] = noted

    verdict = scheduled_condition.rejection(objects.status(pod))
    if verdict is not None and verdict != scheduled_condition.rejection(objects.status(chaperon)):
        wanted.pop(keys.IS_RESERVED, None)

    shown = pod if travel_size.is_small(objects.annotations(pod)) else chaperon
    wanted.update(annotation_merge.foreign(shown))
    for key in changes.pending(chaperon, pod).get("annotations") or ():
        wanted.pop(key, None)
        if key in known:
            wanted[key] = known[key]

    wanted.pop(keys.REPORTED, None)
    if (given := given_annotations.note(chaperon, wanted)) is not None:
        wanted[keys.REPORTED] = given

    annotations = objects.merge_diff(known, wanted)
    return DelegateReport(
        {"metadata": {"uid": objects.uid(chaperon), "annotations": annotations}}
        if annotations
        else {},
        _status_patch(chaperon, status) if status else {},
    )


def _status_patch(chaperon: Object, status: Object) -> Object:
    patch = objects.status_patch(chaperon, status)
    if not objects.status(chaperon).get("phase"):
        # Emptied with the first status, so that the API server need not track the fields of each
        # later write; a reservation that is written does the same.
        patch["metadata"]["managedFields"] = [{}]

    return patch


def _status_changes(
    chaperon: Object, pod: Object, events: Objects | None, *, tight: bool
) -> Object:
    """Return what of a chaperon's status differs from that of its delegate, as a merge patch."""
    before, after = objects.status(chaperon), observed_generation.by_chaperon(chaperon, pod)
    if _is_fresh(objects.status(pod)) and not before:
        return {}

    after = {k: v for k, v in after.items() if k != event_record.FIELD}
    if tight:
        after = status_size.fitting(after, status_size.TIGHT)

    if events:
        after[event_record.FIELD] = events

    return objects.merge_diff(*map(objects.without_nulls, (before, after)))


def _is_fresh(status: Object) -> bool:
    """Return whether nobody has looked at a pod yet.

    A kubelet that refuses a pod (SysctlForbidden, OutOfcpu) writes a phase without conditions.
    """
    return status.get("phase") in (None, "Pending") and not status.get("conditions")
