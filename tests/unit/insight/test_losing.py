"""What becomes of a pod whose target is lost is told, with since when and in how long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from vnode.api import keys
from vnode.insight import losing

NOW = datetime(2026, 1, 1, 12, 5, tzinfo=UTC)
LOST = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T12:00:00Z"}
POLICY: Any = {
    "apiVersion": "vnode.dev/v1alpha1",
    "kind": "PlacementPolicy",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"selector": {}, "mode": "Any", "failover": {"tolerationSeconds": 600}},
}


def pod(seconds: int | None, *, marked: bool = False) -> Any:
    base = {"key": keys.NODE_FAILURES[0], "operator": "Exists", "effect": "NoExecute"}
    more = {} if seconds is None else {"tolerationSeconds": seconds}
    annotations = {keys.FAILOVER: ""} if marked else {}
    return {
        "metadata": {"name": "p", "namespace": "default", "annotations": annotations},
        "spec": {"tolerations": [base | more]},
    }


def stays(**failover: Any) -> Any:
    return POLICY | {"spec": POLICY["spec"] | {"failover": failover}}


@pytest.mark.parametrize(
    ("lost", "policies", "expected"),
    [
        (pod(400), [], "the pod is replaced in 100s, after 400 s, by its tolerations"),
        (pod(20), [], "for longer than 20 s: the pod is replaced, by its tolerations"),
        (pod(None), [], "the pod stays bound to it, as it tolerates that without an end"),
        (
            pod(None, marked=True),
            [POLICY],
            "the pod is replaced in 5m, after 600 s, by placementpolicy/web",
        ),
        (
            pod(None, marked=True),
            [stays(purge="Never")],
            "the pod stays bound to it, as placementpolicy/web says",
        ),
        (pod(400), [POLICY], "the pod is replaced in 100s, after 400 s, by its tolerations"),
    ],
)
def test_it_says_since_when_and_what_follows(lost: Any, policies: Any, expected: str) -> None:
    text = losing.fate(lost, LOST, policies, NOW)
    assert text.startswith("the target has been lost since 2026-01-01T12:00:00Z")
    assert text.endswith(expected)


_UNKNOWN = [
    {},
    LOST | {"status": "True"},
    {"status": "False"},
    LOST | {"lastTransitionTime": "2026-01-01T12:00:00"},
]


@pytest.mark.parametrize("ready", _UNKNOWN)
def test_of_a_target_that_is_not_known_to_be_lost_nothing_is_said(ready: Any) -> None:
    assert losing.fate(pod(20), ready, [], NOW) == ""
