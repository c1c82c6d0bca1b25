"""Where a refusal is recorded the headline says so, and never that all is well."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.explained_pods import (
    ALLOWED,
    ENDING,
    NODE,
    at,
    chaperon,
    crash_loop,
    delegate,
    facts,
    namespace,
    proxy,
    refused,
    target,
)
from vnode.api import keys, objects
from vnode.api.objects import Object
from vnode.insight import failing, failure_cures, judging, status_text, story
from vnode.insight.verdicts import PodState

WORDS = 'admission webhook "deny.example.com" denied the request: policy says 412'
BOUND = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at(50)}]


def event(reason: str, seconds: float = 5, message: str = WORDS) -> Object:
    return {"reason": reason, "type": "Warning", "message": message, "lastTimestamp": at(seconds)}


def with_refusal(obj: Object, words: str = WORDS) -> Object:
    metadata = {**obj["metadata"], "annotations": {**objects.annotations(obj), keys.REFUSED: words}}
    return {**obj, "metadata": metadata}


def unplaced(pod: Object, reason: str = "Unschedulable") -> Object:
    entry = {**refused(WORDS)[0], "reason": reason}
    return {**pod, "status": {**objects.status(pod), "conditions": [entry]}}


STATUSES = [BOUND, []]
RECORDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the target's API server takes no delegate": (
        {"chaperon": chaperon(keys.IS_ALLOWED, message=WORDS)},
        {},
    ),
    "the target's API server takes no chaperon": ({}, {"events": [event("DelegateRefused", 3000)]}),
    "a request for the chaperon is in vain": ({}, {"events": [event("RequestRefused")]}),
    "the target's scheduler has no node": (
        {"chaperon": ALLOWED, "delegate": unplaced(delegate("Pending"))},
        {},
    ),
    "the target's API server does not bind the delegate": (
        {"chaperon": ALLOWED, "delegate": unplaced(delegate("Pending"), "SchedulerError")},
        {},
    ),
    "the status cannot be taken over": (
        {"chaperon": ALLOWED, "delegate": delegate()},
        {"events": [event("FeedbackRefused", 90)]},
    ),
    "the status of one that starts cannot be taken over": (
        {"chaperon": ALLOWED, "delegate": delegate("Pending")},
        {"events": [event("FeedbackRefused", 90)]},
    ),
    "the source's API server takes no change": (
        {"chaperon": ALLOWED, "delegate": delegate()},
        {"events": [event("ChangeRefused")]},
    ),
    "the target takes no change": (
        {"chaperon": with_refusal(ALLOWED), "delegate": delegate()},
        {},
    ),
    "the candidate may not be allowed": (
        {"chaperon": chaperon(keys.IS_RESERVED)},
        {"events": [event("RequestRefused")]},
    ),
}


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("conditions", STATUSES)
@pytest.mark.parametrize("phase", ["Pending", "Running"])
@pytest.mark.parametrize("record", RECORDS)
def test_a_bound_pod_of_which_something_is_refused_is_not_called_well(
    record: str, phase: str, conditions: list[Object], ready: bool
) -> None:
    there, more = RECORDS[record]
    pod = proxy(node=NODE, phase=phase, conditions=conditions)
    verdict = judging.judge(facts(pod, target(ready=ready, **there), **more))
    assert not verdict.state.is_good
    assert verdict.cures
    if ready:
        assert WORDS in verdict.text
        assert "start the agent" not in " ".join(verdict.cures)


@pytest.mark.parametrize("record", RECORDS)
def test_what_the_target_says_is_told_where_only_the_agent_may_ask_it(record: str) -> None:
    """The user's own kubeconfig does not reach it; what came home is there."""
    _there, more = RECORDS[record]
    pod = unplaced(proxy(node=NODE))
    known = facts(pod, target(error="no answer within 6 s"), **more)
    verdict = judging.judge(known)
    assert verdict.state is PodState.NOT_STARTING
    assert WORDS in verdict.text


@pytest.mark.parametrize(
    ("there", "events"),
    [
        ({}, [event("RequestRefused")]),
        ({"chaperon": chaperon()}, [event("RequestRefused")]),
        ({"chaperon": with_refusal(ALLOWED)}, []),
    ],
)
def test_a_pod_whose_end_is_refused_says_so(there: dict[str, Any], events: list[Object]) -> None:
    pod = proxy(node=NODE, phase="Running", metadata=ENDING)
    verdict = judging.judge(facts(pod, target(**there), events=events))
    assert verdict.state is PodState.STUCK_ENDING
    assert WORDS in verdict.text


def test_what_was_refused_long_ago_and_went_on_is_forgotten() -> None:
    reasons = ("FeedbackRefused", "ChangeRefused", "RequestRefused", "DelegateRefused")
    there = target(chaperon=ALLOWED, delegate=delegate())
    pod = proxy(node=NODE, phase="Running", conditions=BOUND)
    known = facts(pod, there, events=[event(reason, 600) for reason in reasons])
    assert judging.judge(known).state is PodState.RUNNING


@pytest.mark.parametrize(
    ("seconds", "state"), [(5, PodState.STARTING), (50, PodState.NOT_STARTING)]
)
def test_a_pod_that_was_just_bound_has_a_moment_to_be_sent(seconds: float, state: PodState) -> None:
    entry = {**BOUND[0], "lastTransitionTime": at(seconds)}
    pod = proxy(node=NODE, conditions=[entry])
    assert judging.judge(facts(pod, target(), namespace=namespace())).state is state


def test_a_pod_of_a_namespace_without_the_label_is_not_sent_and_says_so() -> None:
    pod = proxy(node=NODE, conditions=BOUND, spec={"schedulerName": "default-scheduler"})
    verdict = judging.judge(facts(pod, target(), namespace=namespace(enabled=False)))
    assert verdict.state is PodState.NOT_STARTING
    assert "does not have the label" in verdict.text
    assert "keep the pod off virtual nodes" in verdict.cures[0]


@pytest.mark.parametrize(
    ("refusal", "cure"),
    [
        ("is forbidden: maximum cpu usage per Container is 1, but limit is 2", "LimitRange"),
        ("is invalid: must be less than or equal to cpu limit of 1", "set limits in the pod"),
        (
            "is forbidden: exceeded quota: q, requested: pods=1",
            "raise ResourceQuota q of namespace",
        ),
        ('is forbidden: violates PodSecurity "restricted:latest"', "Pod Security label"),
        (WORDS, "the text names what refuses it"),
        ("is forbidden: some plugin does not like it", "the text names what refuses it"),
    ],
)
def test_each_refusal_of_a_bound_pod_has_its_cure(refusal: str, cure: str) -> None:
    message = f'pods "web" {refusal}'
    there = target(chaperon=chaperon(keys.IS_ALLOWED, message=message))
    verdict = judging.judge(facts(proxy(node=NODE), there))
    assert message in verdict.text
    assert any(cure in each for each in verdict.cures)


INJECTED = {"name": "mesh-proxy", **crash_loop(exitCode=1, reason="Error")}
UNREADY = {
    "type": "Ready",
    "status": "False",
    "reason": "ContainersNotReady",
    "message": "containers with unready status: [mesh-proxy]",
    "lastTransitionTime": at(50),
}


def test_the_logs_of_an_injected_container_are_to_be_had_in_the_target() -> None:
    there = delegate(container={"running": {"startedAt": at(40)}})
    there["spec"]["containers"].append({"name": "mesh-proxy"})
    there["status"]["containerStatuses"].append(INJECTED)
    pod = proxy(node=NODE, phase="Running")
    verdict = judging.judge(facts(pod, target(chaperon=ALLOWED, delegate=there)))
    assert verdict.state is PodState.CRASHING
    assert verdict.cures[0] == (
        "kubectl logs web-x -n default -c mesh-proxy --previous "
        "(in c2, where the container was added)"
    )


def test_a_pod_whose_injected_container_is_not_ready_is_not_shown_as_well() -> None:
    running = {"name": "main", "ready": True, "state": {"running": {"startedAt": at(60)}}}
    pod = proxy(node=NODE, phase="Running", conditions=[UNREADY], containerStatuses=[running])
    assert status_text.ready(pod) == "1/2"
    found = failing.find(pod, facts(pod).now)
    assert found is not None
    assert (found.reason, found.container) == (failing.NOT_READY, "mesh-proxy")
    assert "the target has added" in found.text
    (first, *_) = failure_cures.of(found, pod, target())
    assert "mesh-proxy" in first


def test_phases_that_differ_are_not_called_equal() -> None:
    known = facts(proxy(node=NODE), target(chaperon=ALLOWED, delegate=delegate()))
    told = [line.text for chapter in story.build(known).chapters for line in chapter.lines]
    assert "this pod's phase is Pending, its delegate's Running" in told
