"""What an owner says itself of why it has no pods, or too few."""

from __future__ import annotations

from typing import Any, Final

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


FORBIDDEN: Final = 'pods "web-x" is forbidden: '
NAMES_IT: Final = "the text names what refuses it"


@pytest.mark.parametrize(
    ("warning", "cure"),
    [
        (
            'failed calling webhook "validate.kyverno.svc": refused',
            "see why webhook validate.kyverno.svc of this cluster does not answer",
        ),
        ('failed calling webhook "vnode.multicluster.admiralty.io": x', "that is vnode's webhook"),
        (
            f"{FORBIDDEN}failed quota: team: must specify limits.cpu for: main",
            "set them in the pod template, or make a LimitRange",
        ),
        (
            f"{FORBIDDEN}minimum cpu usage per Container is 100m, but request is 10m",
            "change requests and limits of the template, or the LimitRange",
        ),
        (
            f"{FORBIDDEN}no PriorityClass with name urgent was found",
            "create PriorityClass urgent in this cluster",
        ),
        (
            f'{FORBIDDEN}pod rejected: RuntimeClass "gvisor" not found',
            "create RuntimeClass gvisor in this cluster",
        ),
        (
            f"{FORBIDDEN}unable to create new content because it is being terminated",
            "nothing can be created in namespace default until it is gone",
        ),
        ('admission webhook "x" denied the request: usage per Pod is too high', NAMES_IT),
        (
            f"{FORBIDDEN}Policy 'x' with binding 'y' denied request: usage per Pod",
            NAMES_IT,
        ),
    ],
)
def test_what_refuses_pods_of_an_owner_has_its_own_cure(warning: str, cure: str) -> None:
    told = owner_cures.refused(f"Error creating: {warning}", "default")
    assert told.startswith(f"{warning}; {cure}")
