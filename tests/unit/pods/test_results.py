"""Which ends of delegates are results of their pods, and what a result outlives."""

from __future__ import annotations

import pytest

from vnode.api import keys
from vnode.pods import results

ALLOWED = {keys.IS_ALLOWED: "true"}


@pytest.mark.parametrize(
    ("grace", "finished_at", "seen", "ended"),
    [
        (0, "2026-01-01T00:00:05Z", None, True),
        (0, "2026-01-01T00:00:15Z", None, False),
        (30, "2026-01-01T00:00:05Z", None, False),
        (0, "2026-01-01T00:00:15Z", True, True),
        (0, "2026-01-01T00:00:05Z", False, False),
        (0, None, None, True),
    ],
)
def test_an_end_is_told_from_a_deletion_by_what_was_seen_else_by_times(
    grace, finished_at, seen, ended
):
    times = {"deletionTimestamp": "2026-01-01T00:00:10Z", "deletionGracePeriodSeconds": grace}
    entry = {"name": "main", "state": {"terminated": {"exitCode": 0, "finishedAt": finished_at}}}
    status = {"phase": "Failed", "containerStatuses": [entry] if finished_at else []}
    pod = {"metadata": {"name": "web", **times}, "status": status}
    assert results.had_ended(pod, seen) is ended
    gone = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
    assert not results.had_ended({**pod, "status": {**status, "conditions": [gone]}}, seen)


@pytest.mark.parametrize(
    ("phase", "annotations", "told"),
    [
        ("Succeeded", ALLOWED, True),
        ("Failed", ALLOWED, True),
        ("Running", ALLOWED, False),
        ("Failed", {**ALLOWED, keys.DELEGATE_DELETED: "true"}, False),
        ("Failed", {}, False),
    ],
)
def test_only_a_pod_that_ran_and_was_not_deleted_has_a_result(phase, annotations, told):
    chaperon = {"metadata": {"annotations": annotations}, "status": {"phase": phase}}
    assert results.is_told(chaperon) is told
    assert results.is_late(chaperon, {"status": {"phase": "Pending"}}) is told
    assert not results.is_late(chaperon, {"status": {"phase": phase}})
