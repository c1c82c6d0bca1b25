"""What is kept of a proxy pod, and which chaperons are not, or no longer, its own."""

from __future__ import annotations

import pytest

from vnode.api import keys
from vnode.pods import proxy


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
    assert proxy.is_loser(chaperon(), owner, "here") is loser


@pytest.mark.parametrize(
    ("owner", "orphan"), [(None, True), (pod(uid="u2"), True), (pod("elsewhere"), False)]
)
def test_a_chaperon_is_an_orphan_when_its_very_pod_is_not_there(owner, orphan):
    assert proxy.is_orphan(chaperon(), owner) is orphan


def test_a_pending_pod_is_kept_whole():
    assert proxy.trim(pod()) == pod()


def test_of_a_bound_pod_only_what_is_read_is_kept():
    kept = proxy.trim(pod("here"))
    assert kept["metadata"]["annotations"] == {"team": "a"}
    assert kept["spec"] == {
        "nodeName": "here",
        "containers": [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}],
    }
