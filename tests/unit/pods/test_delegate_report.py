"""What a target reports of a delegate on its chaperon."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from vnode.api import keys, objects, scheduled_condition
from vnode.pods import delegate_report

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def chaperon(*, annotations=None, **status):
    metadata = {"name": "web-abcde", "namespace": "shop", "uid": "c-uid"}
    return {"metadata": {**metadata, "annotations": annotations or {}}, "status": status}


def unscheduled(reason, message=""):
    return {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}


def test_status_and_others_annotations_come_back_and_ours_stay():
    pod = {
        "metadata": {"annotations": {"cni": "10.0.0.1", keys.IS_ALLOWED: "old"}},
        "status": {"phase": "Running", "conditions": []},
    }
    known = chaperon(phase="Pending", annotations={keys.IS_ALLOWED: "true", "stale": "x"})
    report = delegate_report.build(known, pod)
    assert report.status["status"] == {"phase": "Running", "conditions": []}
    assert report.metadata["metadata"]["annotations"] == {
        "cni": "10.0.0.1",
        "stale": None,
        keys.REPORTED: '{"cni":null,"stale":"x"}',
    }


def test_a_chaperon_that_is_up_to_date_is_not_written():
    pod = {"metadata": {}, "status": {"phase": "Running"}}
    report = delegate_report.build(chaperon(phase="Running"), pod)
    assert not report.metadata
    assert not report.status


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Running"])
def test_a_kubelet_that_refuses_a_pod_writes_no_conditions_and_is_reported(phase):
    refused = {"phase": phase, "reason": "SysctlForbidden", "message": "forbidden sysctl"}
    reported = delegate_report.build(chaperon(), {"metadata": {}, "status": refused}).status[
        "status"
    ]
    assert reported == refused


def test_a_pod_that_was_only_just_created_is_not_worth_a_write():
    fresh = {"metadata": {}, "status": {"phase": "Pending", "qosClass": "BestEffort"}}
    assert not delegate_report.build(chaperon(), fresh).status


def test_a_found_delegate_is_no_longer_missing():
    pod = {"metadata": {}, "status": {}}
    known = chaperon(annotations={keys.POD_MISSING_SINCE: objects.timestamp(NOW)})
    annotations = delegate_report.build(known, pod).metadata["metadata"]["annotations"]
    assert annotations == {keys.POD_MISSING_SINCE: None}


def test_a_rejection_withdraws_an_earlier_reservation():
    pod = {"metadata": {}, "status": {"conditions": [unscheduled("Unschedulable", "full")]}}
    known = chaperon(annotations={keys.IS_RESERVED: "true"})
    assert delegate_report.build(known, pod).metadata["metadata"]["annotations"] == {
        keys.IS_RESERVED: None
    }


def test_a_rejection_from_before_the_reservation_does_not_withdraw_it():
    status = {"conditions": [unscheduled("Unschedulable", "full")]}
    known = chaperon(
        annotations={keys.IS_RESERVED: "true"}, phase="Pending", conditions=status["conditions"]
    )
    assert not delegate_report.build(known, {"metadata": {}, "status": status}).metadata


@pytest.mark.parametrize(
    ("reason", "expected"),
    [("Unschedulable", "why"), ("SchedulingGated", "why"), ("SchedulerError", None)],
)
def test_only_the_schedulers_verdicts_are_rejections(reason, expected):
    assert scheduled_condition.rejection({"conditions": [unscheduled(reason, "why")]}) == expected


def test_that_a_delegate_was_deleted_is_noted_while_it_has_not_finished():
    going = {"metadata": {"deletionTimestamp": objects.timestamp(NOW)}, "status": {}}

    annotations = delegate_report.build(chaperon(phase="Running"), going).metadata["metadata"][
        "annotations"
    ]
    assert annotations == {keys.DELEGATE_DELETED: "true"}

    assert not delegate_report.build(chaperon(phase="Succeeded"), going).metadata


def test_a_delegate_in_the_place_of_a_deleted_one_is_not_deleted():
    known = chaperon(phase="Running", annotations={keys.DELEGATE_DELETED: "true"})

    annotations = delegate_report.build(known, {"metadata": {}, "status": {}}).metadata["metadata"]
    assert annotations["annotations"] == {keys.DELEGATE_DELETED: None}


def test_the_end_of_a_deleted_delegate_never_seems_to_be_the_result_of_the_next_one():
    known = chaperon(phase="Failed", annotations={keys.DELEGATE_DELETED: "true"})
    pod = {"metadata": {}, "status": {"phase": "Pending", "conditions": []}}

    first = delegate_report.build(known, pod)
    assert not first.metadata
    assert first.status["status"]["phase"] == "Pending"

    known["status"] = pod["status"]
    then = delegate_report.build(known, pod)
    assert then.metadata["metadata"]["annotations"] == {keys.DELEGATE_DELETED: None}
    assert not then.status
