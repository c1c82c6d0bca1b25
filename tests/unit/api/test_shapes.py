"""What a target sends: read only if it has the form that our code relies on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.apiserver import links
from tests.apiserver.server import APIServer
from tests.permitted import MANIFESTS
from vnode.api import keys, kinds, objects, scheduled_condition, shapes
from vnode.api.identity import Identity
from vnode.api.target_key import TargetKey
from vnode.pods import changes
from vnode.pods.chaperons import build
from vnode.pods.source import after_feedback, candidates, feedback, proxy_state
from vnode.targets.kept_chaperons import trim_chaperon

PARENT = Identity("c1", "uid-of-c1")

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
_GOOD: dict[str, Any] = {
    "metadata": {
        "name": "web-x",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "5",
        "labels": {keys.PARENT_UID: "p"},
        "annotations": {keys.PARENT_NAME: "web"},
        "finalizers": [keys.DELEGATE_FINALIZER],
        "ownerReferences": [{"kind": "Pod", "uid": "x", "controller": True}],
    },
    "spec": {
        "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [{"name": "init"}],
        "ephemeralContainers": [{"name": "shell"}],
        "activeDeadlineSeconds": 5,
        "resources": {},
    },
    "status": {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": None}],
        "containerStatuses": [{"name": "main", "state": {"running": {}}, "restartCount": 1}],
        "aFieldOfTheFuture": [1],
    },
}
_paths = st.sampled_from(
    [
        (),
        ("metadata",),
        ("spec",),
        *(("spec", field) for field in _GOOD["spec"]),
        ("spec", "containers", 0),
        ("spec", "containers", 0, "resources"),
        ("status",),
        *(("metadata", field) for field in _GOOD["metadata"]),
        *(("status", field) for field in _GOOD["status"]),
        ("status", "conditions", 0),
        ("status", "containerStatuses", 0),
        ("status", "containerStatuses", 0, "state"),
        ("status", "podIPs", 0),
    ]
)


def _with(path: tuple[str | int, ...], value: object) -> object:
    """Return a good chaperon with something else in one place."""
    if not path:
        return value

    changed = json.loads(json.dumps(_GOOD))
    place = changed
    for step in path[:-1]:
        place = place[step]

    place[path[-1]] = value
    return changed


def test_what_an_honest_target_sends_is_read() -> None:
    assert shapes.is_chaperon(_GOOD)
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    assert shapes.is_copy({"metadata": _GOOD["metadata"], "data": {"a": "b"}, "status": status})
    assert not shapes.is_copy({"metadata": _GOOD["metadata"], "status": {"loadBalancer": "x"}})
    assert shapes.is_summary({"metadata": _GOOD["metadata"], "capacity": {"cpu": 4, "pods": "9"}})
    assert shapes.is_chaperon({**_GOOD, "status": None})


@given(_paths, _json)
def test_whatever_passes_can_be_read_by_all_who_read_chaperons(path, nonsense) -> None:
    chaperon: Any = _with(path, nonsense)
    if not shapes.is_chaperon(chaperon):
        return

    pod = {
        "metadata": {"name": "web", "namespace": "default", "uid": "p"},
        "spec": {"containers": [{"name": "main"}], "nodeName": "n"},
        "status": {"phase": "Pending"},
    }
    assert isinstance(objects.key(chaperon), str)
    candidates.read(chaperon, 0.0)
    scheduled_condition.rejection(objects.status(chaperon))
    after_feedback.exceeds(pod, feedback.status_patch(pod, chaperon))
    feedback.annotations_patch(pod, chaperon, two_way=True)
    kept = trim_chaperon(chaperon)
    changes.is_news(pod, kept, PARENT)
    changes.chaperon_patch(
        pod, build(pod, PARENT, "c2", manifests=MANIFESTS, allowed=True, finalizer=True), kept
    )
    proxy_state.is_loser(chaperon, pod, "n")


@pytest.mark.parametrize(
    "text",
    [
        "../../kube-system/secrets/x",
        "victim/log?container=c",
        "../pods?watch=true",
        "..",
        "a b",
        "é",
    ],
)
def test_what_names_an_impossible_parent_or_itself_impossibly_is_not_read(text: str) -> None:
    for key in (keys.PARENT_NAME, keys.PARENT_NAMESPACE):
        obj = _with(("metadata", "annotations"), {key: text})
        assert not shapes.is_chaperon(obj)
        assert not shapes.is_copy(obj)

    for field in ("name", "namespace"):
        obj = _with(("metadata", field), text)
        assert not shapes.is_chaperon(obj)
        assert not shapes.is_summary(obj)


@given(_json)
def test_any_json_is_judged(value) -> None:
    assert shapes.is_chaperon(value) in (True, False)
    assert shapes.is_summary(value) in (True, False)
    assert shapes.is_copy(value) in (True, False)


def test_deep_nesting_is_judged() -> None:
    nested: object = "x"
    for _ in range(5_000):
        nested = {"state": nested}

    value = _with(("status", "containerStatuses"), [{"name": "main", "state": {"waiting": nested}}])
    assert shapes.is_chaperon(value) in (True, False)


def test_of_a_summary_no_more_is_kept_than_any_cluster_has() -> None:
    many = {f"example.com/r{n}": "1" for n in range(100_000)} | {"cpu": "4", "pods": 110}
    labels = {f"l{n}": "" for n in range(10_000)}
    metadata = {"name": "singleton", "uid": "u", "resourceVersion": "1", "labels": labels}
    kept = shapes.trim_summary({"metadata": metadata, "capacity": many, "allocatable": many})
    assert len(objects.labels(kept)) == shapes.MOST_LABELS
    for field in ("capacity", "allocatable"):
        assert len(kept[field]) == shapes.MOST_RESOURCES
        assert (kept[field]["cpu"], kept[field]["pods"]) == ("4", 110)


def test_a_bad_entry_of_a_summary_hides_no_other() -> None:
    bad: dict[str, Any] = {"bad": {"deep": []}, "odd": None, "yes": True, "half": 1.5}
    metadata = {"name": "singleton", "uid": "u", "resourceVersion": "1"}
    summary = {
        "metadata": {**metadata, "labels": {**bad, "a": "b"}, "annotations": {**bad, "c": "d"}},
        "capacity": {**bad, "cpu": "4", "pods": 110},
        "allocatable": {**bad, "cpu": 3},
    }
    summary["metadata"]["annotations"][keys.PARENT_NAME] = {"no": "name"}
    assert shapes.is_summary(summary)
    assert shapes.trim_summary(summary) == {
        "metadata": {**metadata, "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "capacity": {"cpu": "4", "pods": 110},
        "allocatable": {"cpu": 3},
    }


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("x" * 4000, "1"),
        ("example.com/" + "x" * 64, "1"),
        ("a" * 254 + "/gpu", "1"),
        ("no name", "1"),
        ("", "1"),
        ("example.com/gpu", "0" * 4000),
        ("example.com/gpu", 10**4000),
    ],
)
def test_what_no_resource_is_called_or_has_goes_to_no_node(name: str, quantity: Any) -> None:
    """Whoever watches Nodes gets each of them at each change."""
    usual = {"cpu": "4", "memory": "64Gi", "hugepages-2Mi": "0", "nvidia.com/gpu": 8}
    metadata = {"name": "singleton", "uid": "u", "resourceVersion": "1"}
    kept = shapes.trim_summary({"metadata": metadata, "capacity": {name: quantity, **usual}})
    assert kept["capacity"] == usual


def test_a_summary_of_usual_size_is_kept_whole() -> None:
    summary = {
        "metadata": {"name": "singleton", "labels": {"a": "b"}, "annotations": {"c": "d"}},
        "capacity": {"cpu": "4"},
        "allocatable": None,
    }
    assert shapes.trim_summary(summary) == summary
    assert shapes.trim_summary({"metadata": {"name": "x"}}) == {
        "metadata": {"name": "x", "labels": {}}
    }


@pytest.mark.looptime
async def test_a_link_keeps_no_more_of_a_summary(clock) -> None:
    server = APIServer("c2", clock)
    many = {f"example.com/r{n}": "1" for n in range(2_000)}
    server.add(kinds.CLUSTER_SUMMARIES, {"metadata": {"name": "singleton"}, "capacity": many})
    link = links.link_to(server, TargetKey("a", "b"), Identity("c1", "u1"), clock)
    async with links.following(link.summaries):
        assert len((link.summary or {})["capacity"]) == shapes.MOST_RESOURCES
