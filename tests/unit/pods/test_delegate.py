"""The target's decisions about a chaperon and its delegate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from vnode.api import keys, objects, scheduled_condition
from vnode.pods import delegate
from vnode.pods.delegate import Absence

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def chaperon(*, phase="", annotations=None, policy="Always", conditions=None):
    status = {"phase": phase} if phase else {}
    if conditions:
        status["conditions"] = conditions

    return {
        "metadata": {
            "name": "web-abcde",
            "namespace": "shop",
            "uid": "c-uid",
            "annotations": annotations or {},
        },
        "spec": {"restartPolicy": policy, "containers": [{"name": "main"}]},
        "status": status,
    }


def unscheduled(reason, message=""):
    return {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}


def test_a_delegate_has_its_chaperons_name_spec_and_ownership():
    pod = delegate.build(chaperon(annotations={"a": "b"}))
    assert objects.key(pod) == "shop/web-abcde"
    assert pod["spec"]["containers"] == [{"name": "main"}]
    assert objects.annotations(pod) == {"a": "b"}
    assert objects.controller_uid(pod) == "c-uid"


def test_a_chaperon_that_never_had_a_delegate_gets_one():
    assert delegate.on_absence(chaperon(), NOW)[0] is Absence.CREATE


def test_a_lost_delegate_is_first_marked_for_the_source_to_judge():
    assert delegate.on_absence(chaperon(phase="Running"), NOW)[0] is Absence.MARK


@pytest.mark.parametrize(
    ("seconds", "policy", "expected"),
    [
        (59, "Always", Absence.WAIT),
        (60, "Always", Absence.CREATE),
        (3600, "OnFailure", Absence.WAIT),
        (3600, "Never", Absence.WAIT),
    ],
)
def test_a_pod_meant_to_run_always_is_created_again_after_a_minute_of_silence(
    seconds, policy, expected
):
    since = objects.timestamp(NOW - timedelta(seconds=seconds))
    annotations = {keys.POD_MISSING_SINCE: since, keys.IS_ALLOWED: "true"}
    lost = chaperon(phase="Running", policy=policy, annotations=annotations)
    assert delegate.on_absence(lost, NOW)[0] is expected


def test_a_pod_that_was_never_allowed_cannot_have_run_and_is_created_again():
    since = objects.timestamp(NOW - timedelta(seconds=60))
    lost = chaperon(phase="Pending", policy="Never", annotations={keys.POD_MISSING_SINCE: since})
    assert delegate.on_absence(lost, NOW)[0] is Absence.CREATE


@pytest.mark.parametrize(
    ("text", "left", "expected"),
    [
        ("5", None, 5),
        ("0", 30, 0),
        ("29", 30, 29),
        ("30", 30, None),
        ("31", 30, None),
        ("31", None, 31),
        ("", None, None),
        ("-1", None, None),
        ("5s", None, None),
        ("\u0665", None, None),
        ("9" * 5000, None, None),
    ],
)
def test_a_deletion_can_only_be_brought_forward(text, left, expected):
    pod = {"metadata": {} if left is None else {"deletionGracePeriodSeconds": left}}
    asking = chaperon(annotations={keys.GRACE_PERIOD: text})
    assert delegate.asked_grace(asking, pod) == expected


def test_the_wait_for_the_source_says_when_to_look_again():
    since = objects.timestamp(NOW - timedelta(seconds=20))
    lost = chaperon(phase="Running", annotations={keys.POD_MISSING_SINCE: since})
    assert delegate.on_absence(lost, NOW) == (Absence.WAIT, timedelta(seconds=40))


def test_status_and_others_annotations_come_back_and_ours_stay():
    pod = {
        "metadata": {"annotations": {"cni": "10.0.0.1", keys.IS_ALLOWED: "old"}},
        "status": {"phase": "Running", "conditions": []},
    }
    known = chaperon(phase="Pending", annotations={keys.IS_ALLOWED: "true", "stale": "x"})
    report = delegate.report(known, pod)
    assert report.status["status"] == {"phase": "Running", "conditions": []}
    assert report.metadata["metadata"]["annotations"] == {
        "cni": "10.0.0.1",
        "stale": None,
        keys.REPORTED: '{"cni":null,"stale":"x"}',
    }


def test_a_chaperon_that_is_up_to_date_is_not_written():
    pod = {"metadata": {}, "status": {"phase": "Running"}}
    report = delegate.report(chaperon(phase="Running"), pod)
    assert not report.metadata
    assert not report.status


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Running"])
def test_a_kubelet_that_refuses_a_pod_writes_no_conditions_and_is_reported(phase):
    refused = {"phase": phase, "reason": "SysctlForbidden", "message": "forbidden sysctl"}
    reported = delegate.report(chaperon(), {"metadata": {}, "status": refused}).status["status"]
    assert reported == refused


def test_a_pod_that_was_only_just_created_is_not_worth_a_write():
    fresh = {"metadata": {}, "status": {"phase": "Pending", "qosClass": "BestEffort"}}
    assert not delegate.report(chaperon(), fresh).status


def test_a_found_delegate_is_no_longer_missing():
    pod = {"metadata": {}, "status": {}}
    known = chaperon(annotations={keys.POD_MISSING_SINCE: objects.timestamp(NOW)})
    annotations = delegate.report(known, pod).metadata["metadata"]["annotations"]
    assert annotations == {keys.POD_MISSING_SINCE: None}


def test_a_rejection_withdraws_an_earlier_reservation():
    pod = {"metadata": {}, "status": {"conditions": [unscheduled("Unschedulable", "full")]}}
    known = chaperon(annotations={keys.IS_RESERVED: "true"})
    assert delegate.report(known, pod).metadata["metadata"]["annotations"] == {
        keys.IS_RESERVED: None
    }


def test_a_rejection_from_before_the_reservation_does_not_withdraw_it():
    status = {"conditions": [unscheduled("Unschedulable", "full")]}
    known = chaperon(
        annotations={keys.IS_RESERVED: "true"}, phase="Pending", conditions=status["conditions"]
    )
    assert not delegate.report(known, {"metadata": {}, "status": status}).metadata


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("Unschedulable", "why"), ("SchedulingGated", "why"), ("SchedulerError", None)],
)
def test_only_the_schedulers_verdicts_are_rejections(reason, expected):
    assert scheduled_condition.rejection({"conditions": [unscheduled(reason, "why")]}) == expected


def test_that_a_delegate_was_deleted_is_noted_while_it_has_not_finished():
    going = {"metadata": {"deletionTimestamp": objects.timestamp(NOW)}, "status": {}}

    annotations = delegate.report(chaperon(phase="Running"), going).metadata["metadata"][
        "annotations"
    ]
    assert annotations == {keys.DELEGATE_DELETED: "true"}

    assert not delegate.report(chaperon(phase="Succeeded"), going).metadata


def test_a_delegate_in_the_place_of_a_deleted_one_is_not_deleted():
    known = chaperon(phase="Running", annotations={keys.DELEGATE_DELETED: "true"})

    annotations = delegate.report(known, {"metadata": {}, "status": {}}).metadata["metadata"]
    assert annotations["annotations"] == {keys.DELEGATE_DELETED: None}


def test_the_end_of_a_deleted_delegate_never_seems_to_be_the_result_of_the_next_one():
    known = chaperon(phase="Failed", annotations={keys.DELEGATE_DELETED: "true"})
    pod = {"metadata": {}, "status": {"phase": "Pending", "conditions": []}}

    first = delegate.report(known, pod)
    assert not first.metadata
    assert first.status["status"]["phase"] == "Pending"

    known["status"] = pod["status"]
    then = delegate.report(known, pod)
    assert then.metadata["metadata"]["annotations"] == {keys.DELEGATE_DELETED: None}
    assert not then.status


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REAL = {"key": "virtual-kubelet.io/provider", "operator": "NotIn", "values": ["admiralty"]}


def terms_of(pod):
    return pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def tolerant(**affinity):
    source = chaperon()
    source["spec"]["tolerations"] = [{"operator": "Exists"}]
    if affinity:
        source["spec"]["affinity"] = {"nodeAffinity": affinity}

    return source


def test_a_delegate_that_tolerates_everything_is_kept_off_virtual_nodes():
    assert "affinity" not in delegate.build(chaperon())["spec"]
    pod = delegate.build(tolerant())
    assert terms_of(pod) == [{"matchExpressions": [REAL]}]
    assert terms_of(delegate.build({**chaperon(), "spec": pod["spec"]})) == terms_of(pod)


def test_what_a_delegate_requires_of_its_node_stays_so():
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    terms = [{"matchExpressions": [zone]}, field, {}]
    pod = delegate.build(tolerant(**{REQUIRED: {"nodeSelectorTerms": terms}}))
    assert terms_of(pod) == [
        {"matchExpressions": [zone, REAL]},
        {**field, "matchExpressions": [REAL]},
        {},  # matches nothing, whatever else is wanted
    ]


def test_only_a_delegate_that_goes_on_still_asks_for_it():
    annotations = {keys.FORWARD: "", "a": "b", keys.SOURCE_POD_MANIFEST: "{}"}
    source = chaperon(annotations=annotations)
    assert objects.annotations(delegate.build(source)) == {"a": "b"}
    assert objects.annotations(delegate.build(source, goes_on=True)) == {"a": "b", keys.FORWARD: ""}
