"""Which steps of a pod that starts are those of any pod, and which are news."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.pods.target import starting

SCHEDULED = {"type": "PodScheduled", "status": "True"}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
PULL_FAILED = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
BACK_OFF = {"waiting": {"reason": "ImagePullBackOff"}}


def pod(*states, conditions=(), phase="Pending", **status):
    entries = [
        {"name": f"container-{number}", "state": state} for number, state in enumerate(states)
    ]
    fields = {"phase": phase, "conditions": [SCHEDULED, *conditions], **status}
    return {"metadata": {}, "status": {"containerStatuses": entries, **fields}}


@pytest.mark.parametrize("state", [None, {}, CREATING, PULL_FAILED, {"waiting": {}}])
def test_a_pod_whose_containers_wait_starts(state):
    assert starting.is_starting(pod(state))


@pytest.mark.parametrize(
    "found",
    [
        pod({"running": {}}),
        pod(CREATING, {"terminated": {"exitCode": 1}}),
        pod(CREATING, initContainerStatuses=[{"state": {"running": {}}}]),
        pod(containerStatuses=[{"state": BACK_OFF, "restartCount": 1}]),
        pod(containerStatuses=[{"state": BACK_OFF, "lastState": {"terminated": {}}}]),
        pod(CREATING, phase="Running"),
        pod(phase="Failed"),
        pod(conditions=[]) | {"status": {"phase": "Pending"}},
        pod() | {"metadata": {"deletionTimestamp": "2026-11-26T10:00:00Z"}},
        {"status": {"phase": "Pending", "conditions": [SCHEDULED | {"status": "False"}]}},
    ],
)
def test_a_pod_that_has_run_or_has_no_node_or_ends_does_not_start(found):
    assert not starting.is_starting(found)


def test_a_pod_is_bound_alone_until_something_is_said_of_a_container():
    assert starting.is_bound_alone(pod())
    assert not starting.is_bound_alone(pod(CREATING))


STEPS = [
    pod(),
    pod(CREATING),
    pod(CREATING, conditions=[{"type": "PodReadyToStartContainers", "status": "True"}]),
    pod({"waiting": {"reason": "PodInitializing"}}, podIP="10.0.0.1", startTime="now"),
]


@given(st.sampled_from([{}, *STEPS]), st.sampled_from(STEPS))
def test_steps_that_all_pods_take_are_no_news(reported, found):
    assert not starting.is_news(reported, found)


@given(
    st.sampled_from([{}, *STEPS]),
    st.sampled_from(
        [
            pod(PULL_FAILED),
            pod(CREATING, BACK_OFF),
            pod({"waiting": {"reason": "CreateContainerConfigError"}}),
            pod(CREATING, conditions=[{"type": "example.com/attached", "status": "False"}]),
            pod(reason="NodeLost"),
        ]
    ),
)
def test_what_keeps_a_container_from_starting_and_conditions_of_others_are_news(reported, found):
    assert starting.is_news(reported, found)
    assert not starting.is_news(found, found)


def test_a_failed_pull_that_is_tried_again_is_news_once():
    assert not starting.is_news(pod(PULL_FAILED), pod(BACK_OFF))
    assert not starting.is_news(pod(BACK_OFF), pod(PULL_FAILED))
    assert starting.is_news(pod(PULL_FAILED, CREATING), pod(PULL_FAILED, BACK_OFF))


def test_another_value_of_a_condition_of_others_is_news():
    before = {"type": "example.com/attached", "status": "False", "reason": "Waiting"}
    assert starting.is_news(
        pod(conditions=[before]), pod(conditions=[before | {"status": "True", "reason": ""}])
    )
