"""Builds what a target reports of a delegate on its chaperon: merge patches of what differs. Pure.

The pod's status becomes the chaperon's, and so do the annotations of others. How the delegate came
about from the chaperon is in `delegate`.
"""

from __future__ import annotations

from dataclasses import dataclass

from vnode.api import keys, objects, scheduled_condition
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


def build(
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
