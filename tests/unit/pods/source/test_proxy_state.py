"""What is kept of a proxy pod, and which chaperons are not, or no longer, its own."""

from __future__ import annotations

import pytest

from vnode.api import keys
from vnode.api.objects import Object
from vnode.pods.source import proxy_state


def pod(node="", *, uid="u1", ending=False):
    metadata = {"uid": uid, "annotations": {keys.SOURCE_POD_MANIFEST: "{}", "team": "a"}}
    if ending:
        metadata["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "volumes": [{"name": "v"}]}
    return {"metadata": metadata, "spec": {**spec, "nodeName": node} if node else spec}


def chaperon(uid="u1"):
    return {"metadata": {"labels": {keys.PARENT_UID: uid}}}


@pytest.mark.parametrize(
    ("owner", "loser"),
    [
        (None, False),
        (pod(), False),
        (pod("here"), False),
        (pod("elsewhere"), True),
        (pod(ending=True), True),
        (pod("here", ending=True), False),
        (pod("elsewhere", uid="u2"), False),
    ],
)
def test_a_chaperon_loses_when_its_pod_is_bound_elsewhere_or_ends_unbound(owner, loser):
    assert proxy_state.is_loser(chaperon(), owner, "here") is loser


@pytest.mark.parametrize(
    ("owner", "orphan"), [(None, True), (pod(uid="u2"), True), (pod("elsewhere"), False)]
)
def test_a_chaperon_is_an_orphan_when_its_very_pod_is_not_there(owner, orphan):
    assert proxy_state.is_orphan(chaperon(), owner) is orphan


def test_a_pending_pod_is_kept_whole():
    assert proxy_state.trim(pod()) == pod()


def test_of_a_bound_pod_only_what_is_read_is_kept():
    kept = proxy_state.trim(pod("here"))
    assert kept["metadata"]["annotations"] == {"team": "a"}
    assert kept["spec"] == {
        "nodeName": "here",
        "containers": [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}],
    }


def bound(policy="Always", phase="Running", *, own=30, asked=None):
    metadata = {"uid": "u1"} if asked is None else {"deletionGracePeriodSeconds": asked}
    spec = {"nodeName": "n", "restartPolicy": policy, "terminationGracePeriodSeconds": own}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def reporting(*annotations, phase="Running", ending=False):
    metadata: Object = {"annotations": dict.fromkeys(annotations, "x")}
    if ending:
        metadata["deletionTimestamp"] = "2026-11-21T12:00:00Z"

    return {"metadata": metadata, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("chaperon", "expected"),
    [
        (reporting(), False),
        (reporting(phase="Failed"), False),
        (reporting(keys.DELEGATE_DELETED), True),
        (reporting(keys.POD_MISSING_SINCE), True),
        (reporting(keys.POD_MISSING_SINCE, phase="Succeeded"), True),
        (reporting(ending=True), True),
    ],
)
def test_a_pod_that_is_to_run_always_goes_with_its_delegate(chaperon, expected):
    assert proxy_state.has_lost_delegate(bound(), chaperon) is expected


@pytest.mark.parametrize(
    ("chaperon", "expected"),
    [
        (reporting(keys.DELEGATE_DELETED, phase="Succeeded"), True),
        (reporting(keys.POD_MISSING_SINCE, phase="Succeeded"), False),
        (reporting(ending=True, phase="Failed"), False),
        (reporting(keys.POD_MISSING_SINCE), True),
    ],
)
def test_a_complete_pod_outlives_a_delegate_that_was_deleted_later(chaperon, expected):
    assert proxy_state.has_lost_delegate(bound("Never"), chaperon) is expected
    if not expected:
        assert not proxy_state.has_lost_delegate(
            bound("Never", "Succeeded"), reporting(ending=True)
        )


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (bound(), None),
        (bound(asked=30), None),
        (bound(asked=1), 1),
        (bound(asked=0), 0),
        (bound(asked=0, own=0), None),
        (bound("Never", "Succeeded", asked=0), None),
    ],
)
def test_a_grace_period_is_passed_on_if_it_is_not_the_pods_own(pod, expected):
    assert proxy_state.asked_grace(pod) == expected
    assert proxy_state.asked_grace(proxy_state.trim(pod)) == expected
