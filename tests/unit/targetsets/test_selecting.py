"""Which profiles a set selects: properties are compared as text, or as numbers with units."""

from __future__ import annotations

from typing import Any

import pytest

from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.targetsets import spec
from vnode.targetsets.spec import RemovalPolicy

PROFILE: Object = {
    "metadata": {"namespace": "fleet", "name": "east", "labels": {"env": "prod"}},
    "spec": {"clusterManager": {"name": "ocm"}},
    "status": {
        "properties": [
            {"name": "memory", "value": "2048Mi"},
            {"name": "location", "value": "eu-west"},
            {"name": "gpus", "value": "8"},
        ],
        "conditions": [{"type": "ControlPlaneHealthy", "status": "True"}],
    },
}


def selects(profile: Object = PROFILE, namespace: str = "", **profiles: Any) -> bool:
    obj = {"metadata": {"name": "s", "namespace": namespace}, "spec": {"profiles": profiles}}
    return spec.decode(obj).selection.matches(profile)


@pytest.mark.parametrize(
    ("name", "operator", "values", "matches"),
    [
        ("memory", "Gt", ["1Gi"], True),
        ("memory", "Ge", ["2Gi"], True),
        ("memory", "Gt", ["2Gi"], False),
        ("memory", "Le", ["2Gi"], True),
        ("memory", "Lt", ["2Gi"], False),
        ("memory", "In", ["2Gi", "other"], True),
        ("memory", "NotIn", ["2Gi"], False),
        ("memory", "In", ["2048Mi"], True),
        ("gpus", "In", [8], True),
        ("gpus", "Gt", ["7500m"], True),
        ("location", "In", ["eu-west"], True),
        ("location", "In", ["eu"], False),
        ("location", "NotIn", ["eu"], True),
        ("location", "Gt", ["0"], False),
        ("location", "Exists", [], True),
        ("absent", "Exists", [], False),
        ("absent", "DoesNotExist", [], True),
        ("absent", "Lt", ["1"], False),
        ("absent", "NotIn", ["1"], True),
        ("absent", "In", ["1"], False),
    ],
)
def test_properties_are_compared(
    name: str, operator: str, values: list[Any], matches: bool
) -> None:
    assert selects(properties=[{"name": name, "operator": operator, "values": values}]) is matches


def test_all_that_is_asked_must_hold() -> None:
    asked: dict[str, Any] = {
        "namespace": "fleet",
        "selector": {"matchLabels": {"env": "prod"}},
        "managers": ["fleet", "ocm"],
        "names": ["east"],
        "properties": [{"name": "gpus", "operator": "Ge", "values": ["8"]}],
        "conditions": [{"type": "ControlPlaneHealthy"}],
    }
    assert selects(**asked)
    others: dict[str, Any] = {
        "namespace": "other",
        "selector": {"matchLabels": {"env": "test"}},
        "managers": ["fleet"],
        "names": ["west"],
        "properties": [{"name": "gpus", "operator": "Gt", "values": ["8"]}],
        "conditions": [{"type": "ControlPlaneHealthy", "status": "False"}],
    }
    for field, value in others.items():
        assert not selects(**{**asked, field: value}), field


def test_an_absent_condition_is_unknown() -> None:
    assert selects(conditions=[{"type": "Joined", "status": "Unknown"}])
    assert not selects(conditions=[{"type": "Joined"}])


def test_a_profile_that_is_being_deleted_is_not_selected() -> None:
    metadata = {**PROFILE["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert not selects({**PROFILE, "metadata": metadata}, selector={})


def test_a_target_set_selects_in_its_own_namespace() -> None:
    assert selects(namespace="fleet", selector={})
    assert not selects(namespace="team", selector={})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"profiles": {}}, "selects nothing: write selector: {} for all"),
        ({"profiles": {"selector": {}, "names2": []}}, 'unknown field "names2"'),
        (
            {"profiles": {"properties": [{"name": "a", "operator": "Gt", "values": ["x"]}]}},
            r"spec.profiles.properties\[0\]",
        ),
        ({"profiles": {"properties": [{"name": "a", "operator": "In"}]}}, "In needs values"),
        ({"profiles": {"properties": [{"name": "a", "operator": "Is"}]}}, "is none of Gt"),
        ({"profiles": {"selector": {}}, "removal": {"after": "soon"}}, "spec.removal.after"),
        ({"profiles": {"selector": {}}, "removal": {"maxPerMinute": 0}}, "maxPerMinute"),
        ({"profiles": {"selector": {}}, "removal": {"policy": "Keep"}}, "policy"),
    ],
)
def test_what_is_wrong_is_named(wrong: Object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        spec.decode({"metadata": {"name": "s"}, "spec": wrong})


def test_a_target_set_names_no_namespace() -> None:
    profiles = {"selector": {}, "namespace": "other"}
    with pytest.raises(ConfigError, match="is for a ClusterTargetSet"):
        spec.decode(
            {"metadata": {"name": "s", "namespace": "team"}, "spec": {"profiles": profiles}}
        )


def test_by_default_a_target_is_drained_after_five_minutes() -> None:
    decoded = spec.decode({"metadata": {"name": "s"}, "spec": {"profiles": {"selector": {}}}})
    assert (decoded.policy, decoded.after, decoded.per_minute) == (RemovalPolicy.DRAIN, 300, 10)
