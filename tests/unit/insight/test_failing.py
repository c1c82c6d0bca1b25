"""Which pods fail, by their own status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import failing
from vnode.insight.failing import FailureKind

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def at(seconds: float) -> str:
    """Return the timestamp of that many seconds ago."""
    return objects.timestamp(NOW - timedelta(seconds=seconds))


def pod(
    *statuses: Object, phase: str = "Running", container: Object | None = None, **more: Any
) -> Object:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"containers": [{"name": "main", **(container or {})}]},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "main", **status} for status in statuses],
            **more,
        },
    }


def waiting(reason: str, **more: Any) -> Object:
    return {"state": {"waiting": {"reason": reason}}, **more}


def running(seconds: float, *, ready: bool = False, **more: Any) -> Object:
    return {"state": {"running": {"startedAt": at(seconds)}}, "ready": ready, **more}


def ended(code: int, **more: Any) -> Object:
    return {"state": {"terminated": {"exitCode": code, **more}}}


@pytest.mark.parametrize(
    "status",
    [
        waiting("ContainerCreating"),
        waiting("PodInitializing"),
        waiting(""),
        running(3600, ready=True),
        running(5),
        running(3600, started=False),
        ended(0, reason="Completed"),
    ],
)
def test_a_pod_that_starts_runs_or_has_done_its_work_does_not_fail(status: Object) -> None:
    assert failing.find(pod(status), NOW) is None


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (waiting("ImagePullBackOff"), FailureKind.IMAGE, "ImagePullBackOff"),
        (waiting("ErrImagePull"), FailureKind.IMAGE, "ErrImagePull"),
        (waiting("InvalidImageName"), FailureKind.IMAGE, "InvalidImageName"),
        (waiting("ErrImageNeverPull"), FailureKind.IMAGE, "ErrImageNeverPull"),
        (
            waiting("CreateContainerConfigError"),
            FailureKind.CONFIGURATION,
            "CreateContainerConfigError",
        ),
        (waiting("RunContainerError"), FailureKind.CONFIGURATION, "RunContainerError"),
        (waiting("CrashLoopBackOff"), FailureKind.CRASH, "CrashLoopBackOff"),
        (ended(137, reason="OOMKilled"), FailureKind.CRASH, "OOMKilled"),
        (ended(1), FailureKind.CRASH, "Error"),
        (running(31), FailureKind.NOT_READY, "NotReady"),
    ],
)
def test_a_container_that_cannot_go_on_makes_its_pod_fail(
    status: Object, kind: FailureKind, reason: str
) -> None:
    found = failing.find(pod(status), NOW)
    assert found is not None
    assert (found.kind, found.reason, found.container) == (kind, reason, "main")


def test_a_pod_that_was_asked_to_end_may_do_so_with_any_exit_code() -> None:
    going = pod(ended(143, reason="Error"))
    going["metadata"]["deletionTimestamp"] = at(1)
    assert failing.find(going, NOW) is None


def test_an_init_container_counts_as_well() -> None:
    broken = {"name": "prepare", **ended(2, reason="Error")}
    found = failing.find(
        pod(waiting("PodInitializing"), phase="Pending", initContainerStatuses=[broken]), NOW
    )
    assert found is not None
    assert found.text == "container prepare: Error, exit code 2"


@pytest.mark.parametrize(
    ("code", "expected"),
    [(143, "Error, exit code 143 (SIGTERM)"), (1, "Error, exit code 1"), (255, "exit code 255")],
)
def test_an_exit_code_that_stands_for_a_signal_is_named(code: int, expected: str) -> None:
    found = failing.find(pod(ended(code, reason="Error")), NOW)
    assert found is not None
    assert found.text.endswith(expected)


@pytest.mark.parametrize(("seconds", "fails"), [(110, False), (130, True)])
def test_a_container_has_the_time_of_its_probes_to_become_ready(
    seconds: float, *, fails: bool
) -> None:
    probes = {
        "readinessProbe": {"initialDelaySeconds": 60, "periodSeconds": 5, "failureThreshold": 6},
        "startupProbe": {"periodSeconds": 10, "failureThreshold": 3},
    }
    assert (failing.find(pod(running(seconds), container=probes), NOW) is not None) is fails


@pytest.mark.parametrize(("seconds", "fails"), [(5, False), (60, True)])
def test_a_readiness_gate_that_stays_closed_is_named(seconds: float, *, fails: bool) -> None:
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "ReadinessGatesNotReady",
        "message": 'corresponding condition of pod readiness gate "example.com/up" does not exist.',
        "lastTransitionTime": at(seconds),
    }
    found = failing.find(pod(running(60, ready=True), conditions=[ready]), NOW)
    assert (found is not None) is fails
    assert found is None or "example.com/up" in found.text


def test_a_failed_pod_says_why_as_a_whole_and_which_container() -> None:
    whole = failing.find(
        pod(ended(137), phase="Failed", reason="Evicted", message="low on\nmemory"), NOW
    )
    assert whole is not None
    assert (whole.kind, whole.reason, whole.exit_code) == (FailureKind.FAILED, "Evicted", 137)
    assert whole.text == (
        "the pod has failed: Evicted: low on memory: container main: Error, exit code 137 (SIGKILL)"
    )
    assert failing.find(pod(phase="Succeeded"), NOW) is None


@pytest.mark.parametrize(
    ("status", "is_away", "expected"),
    [
        (running(60, ready=True), False, "Running"),
        (running(60), False, "NotReady"),
        (waiting("CrashLoopBackOff"), False, "CrashLoopBackOff"),
        (running(60, ready=True), True, "TargetUnreachable"),
    ],
)
def test_the_word_for_a_pod_is_kubectls_where_kubectl_has_one(
    status: Object, expected: str, *, is_away: bool
) -> None:
    assert failing.status(pod(status), NOW, is_away=is_away) == expected


def test_what_has_ended_stays_known_while_its_target_is_away() -> None:
    assert failing.status(pod(phase="Succeeded"), NOW, is_away=True) == "Succeeded"
    going = pod(running(60))
    going["metadata"]["deletionTimestamp"] = at(1)
    assert failing.status(going, NOW, is_away=True) == "Terminating"


def test_probes_that_wait_for_longer_than_there_is_time_are_no_error() -> None:
    probe = {"initialDelaySeconds": 2**62, "periodSeconds": 2**31, "failureThreshold": 2**31}
    assert failing._time_to_be_ready({"readinessProbe": probe}) > timedelta(days=365)
