"""What counts as a touch of what runs, while vnode is upgraded under it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.upgrades import before, harm
from vnode.api.objects import Object

RUNNING: Object = {
    "metadata": {"name": "web", "uid": "1"},
    "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "a"}]},
    "status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "main", "restartCount": 0, "state": {"running": {"startedAt": "t"}}}
        ],
    },
}


def changed(*path: Any, value: object) -> Object:
    """Return the pod with something else at a path."""
    pod = copy.deepcopy(RUNNING)
    place: Any = pod
    for each in path[:-1]:
        place = place[each]
    place[path[-1]] = value
    return pod


@pytest.mark.parametrize(
    "new",
    [
        RUNNING,
        changed("metadata", "labels", value={"a": "b"}),
        changed("status", "podIP", value="192.0.2.1"),
    ],
)
def test_notes_and_addresses_are_no_harm(new: Object):
    assert list(harm.of_change(RUNNING, new)) == []


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (None, "was deleted"),
        (changed("metadata", "uid", value="2"), "was deleted"),
        (changed("metadata", "deletionTimestamp", value="t"), "is being deleted"),
        (changed("spec", "nodeName", value="m"), "has another content: {'spec': {'nodeName'"),
        (changed("status", "conditions", 0, "status", value="False"), "is Ready no more"),
        (changed("status", "containerStatuses", 0, "restartCount", value=1), "was restarted"),
        (
            changed("status", "conditions", value=[{"type": "DisruptionTarget", "status": "True"}]),
            "is disrupted",
        ),
    ],
)
def test_what_ends_or_changes_a_pod_is_harm(new: Object | None, words: str):
    assert any(each.startswith(words) for each in harm.of_change(RUNNING, new))


def test_of_a_service_only_whom_it_reaches_counts():
    spec = {"clusterIP": "192.0.2.9", "selector": {"a": "b"}}
    service: Object = {"metadata": {"uid": "1"}, "spec": spec}
    other = {**service, "spec": {**spec, "selector": {"a": "c"}}}
    assert list(harm.of_change(service, other)) == []

    def slice_of(*ready: bool) -> Object:
        endpoints = [
            {"addresses": [f"192.0.2.{number}"], "conditions": {"ready": each}}
            for number, each in enumerate(ready)
        ]
        return {"metadata": {"uid": "1"}, "endpoints": endpoints}

    assert list(harm.of_change(slice_of(True, True), slice_of(True, True, False))) == []
    [words] = harm.of_change(slice_of(True, True), slice_of(True, False))
    assert words == "has another content: {'ready': ['192.0.2.0']}"


def test_a_clone_without_the_history_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VNODE_BEFORE", "0" * 40)
    with pytest.raises(AssertionError, match="git fetch --unshallow"):
        before.tree()
