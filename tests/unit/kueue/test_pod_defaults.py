"""Requests that the API server sets in pods of a template."""

from __future__ import annotations

from vnode.kueue import pod_defaults


def test_limits_are_requests_where_there_are_none() -> None:
    spec = {
        "containers": [
            {
                "name": "a",
                "resources": {"limits": {"gpu": "1", "cpu": "4"}, "requests": {"cpu": "2"}},
            },
            {"name": "b"},
        ],
        "initContainers": [{"name": "c", "resources": {"limits": {"gpu": "2"}}}],
        "resources": {"limits": {"memory": "1Gi"}},
    }
    found = pod_defaults.completed(spec)
    assert [each.get("resources", {}).get("requests") for each in found["containers"]] == [
        {"gpu": "1", "cpu": "2"},
        None,
    ]
    assert found["initContainers"][0]["resources"]["requests"] == {"gpu": "2"}
    assert found["resources"]["requests"] == {"memory": "1Gi"}


def test_the_template_itself_stays_as_it_is() -> None:
    resources = {"limits": {"gpu": "1"}}
    pod_defaults.completed({"containers": [{"name": "a", "resources": resources}]})
    assert resources == {"limits": {"gpu": "1"}}
