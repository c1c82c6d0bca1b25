"""What an owner says itself of why it has no pods, or too few."""

from __future__ import annotations

from typing import Any

import pytest

from vnode.api.objects import Object
from vnode.insight import owner_cures
from vnode.insight.named_pods import NamedResource

QUOTA = 'pods "it-abc-x" is forbidden: exceeded quota: team, requested: pods=1'
FAILED = {
    "type": "Failed",
    "status": "True",
    "reason": "BackoffLimitExceeded",
    "message": "Job has reached the specified backoff limit",
}
REFUSED = {"type": "ReplicaFailure", "status": "True", "message": QUOTA}
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}


def owner(spec: Object, *, owners: tuple[Object, ...] = (), **status: Any) -> Object:
    metadata = {"name": "it", "namespace": "default", "ownerReferences": list(owners)}
    return {"metadata": metadata, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        (
            "job",
            owner({}, conditions=[FAILED]),
            (
                "it has failed: BackoffLimitExceeded: Job has reached the specified backoff limit; "
                "what its pods said: kubectl describe job/it -n default"
            ),
        ),
        ("cronjob", owner({"schedule": "0 3 * * *"}), "it has not run yet; its schedule is 0 3"),
        (
            "cronjob",
            owner({"schedule": "0 3 * * *"}, lastScheduleTime="2026-01-01T03:00:00Z"),
            "it ran last at 2026-01-01T03:00:00Z, and no pods of its Jobs are left",
        ),
        (
            "replicaset",
            owner({"replicas": 0}, owners=(WEB,)),
            "it is not the present one of deployment/web: vnode explain deployment/web -n default",
        ),
        (
            "deployment",
            owner({"replicas": 2}, conditions=[REFUSED]),
            f"{QUOTA}; free what is used, or raise it, in this cluster",
        ),
    ],
)
def test_an_owner_tells_by_its_status_why_it_has_no_pods(
    kind: str, found: Object, expected: str
) -> None:
    told = owner_cures.without_pods(NamedResource(kind, "it"), found, "")
    assert told.startswith(expected)


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("statefulset", {}, "statefulset/it has 1 of 3 pods: it creates each once the one before"),
        ("statefulset", {"podManagementPolicy": "Parallel"}, ""),
        ("deployment", {"paused": True}, "deployment/it has 1 of 3 pods: it is paused: kubectl"),
        ("deployment", {}, ""),
    ],
)
def test_an_owner_that_waits_says_for_what(kind: str, spec: Object, expected: str) -> None:
    found = owner({"replicas": 3, **spec})
    told = owner_cures.too_few(NamedResource(kind, "it"), found, 1, "")
    assert told[: len(expected)] == expected
    assert bool(told) is bool(expected)
