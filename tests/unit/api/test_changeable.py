"""What of a spec is compared, and what is kept so that it can be."""

from __future__ import annotations

from typing import Any

from vnode.api import changeable

SPEC: dict[str, Any] = {
    "containers": [
        {
            "name": "main",
            "image": "nginx",
            "resources": {"requests": {"cpu": "1"}},
            "command": ["x"],
        }
    ],
    "initContainers": [{"name": "side", "image": "envoy", "restartPolicy": "Always"}],
    "ephemeralContainers": [{"name": "shell", "image": "busybox"}],
    "activeDeadlineSeconds": 60,
    "nodeSelector": {"disk": "ssd"},
}


def test_a_trimmed_spec_is_seen_like_the_whole_one():
    kept = changeable.trim(SPEC)
    assert changeable.view(kept) == changeable.view(SPEC)
    assert "nodeSelector" not in kept
    assert "command" not in kept["containers"][0]


def test_the_view_has_containers_by_name():
    assert changeable.view(SPEC) == {
        "images": {"containers": {"main": "nginx"}, "initContainers": {"side": "envoy"}},
        "resources": {"containers": {"main": {"requests": {"cpu": "1"}}}},
        "ephemeralContainers": {"shell": True},
        "activeDeadlineSeconds": 60,
    }


def test_resources_of_the_pod_as_a_whole_are_seen():
    assert changeable.view({"resources": {"limits": {"cpu": "2"}}}) == {
        "resources": {"pod": {"limits": {"cpu": "2"}}}
    }


def test_a_living_pod_overlays_only_what_may_change_of_containers_that_are_there():
    live = {
        "containers": [
            {"name": "injected", "image": "x"},
            {"name": "main", "image": "nginx:2", "command": ["y"]},
        ],
        "nodeSelector": {"virtual": "node"},
        "activeDeadlineSeconds": 30,
    }
    result = changeable.overlaid(SPEC, live)
    assert result["containers"] == [{**SPEC["containers"][0], "image": "nginx:2"}]
    assert result["initContainers"] == SPEC["initContainers"]
    assert result["nodeSelector"] == {"disk": "ssd"}
    assert result["activeDeadlineSeconds"] == 30
    assert SPEC["containers"][0]["image"] == "nginx"
