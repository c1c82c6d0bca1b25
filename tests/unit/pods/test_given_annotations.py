"""Which annotations of a chaperon its source gave, and which one of its delegates had."""

from __future__ import annotations

import json
from typing import Any

from tests.permitted import MANIFESTS
from tests.unit.pods.bound_pods import PARENT, new_pod
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.pods import annotation_merge, chaperons, delegate, delegate_report, given_annotations
from vnode.pods.source import feedback

INJECTED = "injector.example.com/status"


def sent(annotations: dict[str, str], *, finalizer: bool = True) -> Object:
    """Return the chaperon of a pod with these annotations."""
    pod = new_pod(node="admiralty-shop-c2", metadata={"annotations": dict(annotations)})
    built = chaperons.build(
        pod, PARENT, "shop/c2", manifests=MANIFESTS, allowed=True, finalizer=finalizer
    )
    return {**built, "metadata": {**built["metadata"], "uid": "c"}, "status": {}}


def reported(chaperon: Object, changed: dict[str, str | None], phase: str = "Running") -> Object:
    """Return the chaperon of a delegate whose annotations the target has changed."""
    pod = delegate.build(chaperon)
    annotations = {**objects.annotations(pod), **changed}
    pod["metadata"]["annotations"] = {k: v for k, v in annotations.items() if v is not None}
    pod["status"] = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
    report = delegate_report.build(chaperon, pod)
    metadata = objects.merge_patches(chaperon["metadata"], objects.metadata(report.metadata))
    known = {k: v for k, v in objects.annotations({"metadata": metadata}).items() if v is not None}
    status = objects.status(report.status) or objects.status(chaperon)
    return {**chaperon, "metadata": {**metadata, "annotations": known}, "status": status}


def of_next(chaperon: Object) -> dict[str, Any]:
    """Return the annotations of others that the next delegate begins with."""
    return annotation_merge.foreign(delegate.build(chaperon))


def test_what_a_target_wrote_on_a_delegate_is_shown_and_does_not_reach_the_next() -> None:
    for finalizer in (True, False):  # a source that runs vnode, and one that runs Admiralty
        after = reported(sent({"team": "a"}, finalizer=finalizer), {INJECTED: "true"})
        assert objects.annotations(after)[INJECTED] == "true"
        assert of_next(after) == {"team": "a"}
        again = reported(after, {INJECTED: "later", "cni": "10.0.0.1"})
        assert of_next(again) == {"team": "a"}
        assert INJECTED not in objects.annotations(reported(again, {}))


def test_what_a_target_has_changed_or_removed_is_as_the_source_gave_it_on_the_next() -> None:
    for finalizer in (True, False):
        after = reported(
            sent({"team": "a", "size": "1"}, finalizer=finalizer), {"team": "b", "size": None}
        )
        assert objects.annotations(after)["team"] == "b"
        assert "size" not in objects.annotations(after)
        assert of_next(after) == {"team": "a", "size": "1"}
        assert keys.REPORTED not in objects.annotations(reported(after, {}))


def test_a_delegate_that_nobody_has_looked_at_has_reported_already() -> None:
    after = reported(sent({}), {INJECTED: "true"}, phase="")
    assert of_next(after) == {}


def test_what_the_source_sends_later_counts() -> None:
    after = reported(sent({"team": "a"}), {"team": "b", INJECTED: "true"})
    record = {"annotations": {"team": "c", INJECTED: "by the user"}}
    after["metadata"]["annotations"][keys.SENT] = json.dumps(record)
    assert of_next(after) == {"team": "c", INJECTED: "by the user"}
    after["metadata"]["annotations"][keys.SENT] = json.dumps({"annotations": {}})
    assert of_next(after) == {}


def test_chaperons_that_an_earlier_version_has_reported_on_are_read_by_what_was_sent() -> None:
    after = reported(sent({"team": "a"}), {INJECTED: "true", "team": "b"})
    del after["metadata"]["annotations"][keys.REPORTED]
    assert of_next(after) == {"team": "a"}


def test_a_spoilt_note_or_record_gives_no_delegate_what_is_no_annotation() -> None:
    for spoilt in ("[]", '{"a": 1, "annotations": [1]}', '{"annotations": {"a": {}}}', "{"):
        chaperon = sent({"team": "a"})
        chaperon["metadata"]["annotations"] |= {keys.REPORTED: spoilt, keys.SENT: spoilt}
        assert all(isinstance(value, str) for value in of_next(chaperon).values())


def test_a_chaperon_is_up_to_date_once_it_was_reported_on() -> None:
    after = reported(sent({"team": "a"}), {INJECTED: "true"})
    assert given_annotations.note(after, objects.annotations(after)) == '{"' + INJECTED + '":null}'


def test_what_was_fed_back_to_a_pod_does_not_reach_the_target_that_gets_it_next() -> None:
    """An owner may have copied it to a new pod, with the record."""
    fed = {INJECTED: "true", "gone": None}
    annotations = {"team": "a", INJECTED: "true", keys.FED_BACK: json.dumps(fed)}
    assert annotation_merge.foreign(sent(annotations)) == {"team": "a"}
    changed = {**annotations, INJECTED: "by the user"}
    assert annotation_merge.foreign(sent(changed)) == {"team": "a", INJECTED: "by the user"}


def test_in_place_of_what_was_fed_back_a_pod_has_what_its_user_gave_it() -> None:
    live = {"metadata": {"annotations": {"team": "b", keys.FED_BACK: '{"team":"b"}'}}}
    first = {"metadata": {"annotations": {"team": "a"}}}
    assert annotation_merge.own(live, first) == {"team": "a"}


def test_annotations_of_a_target_with_admiralty_are_known_as_the_targets() -> None:
    chaperon = sent({}, finalizer=False)
    chaperon["metadata"]["annotations"][INJECTED] = "true"
    pod = new_pod(node="admiralty-shop-c2")
    patch = feedback.annotations_patch(pod, chaperon, two_way=False)
    pod["metadata"]["annotations"] |= objects.annotations(patch)
    assert annotation_merge.own(pod, pod) == {}
