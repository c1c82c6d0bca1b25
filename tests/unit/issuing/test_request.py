"""What a request asks for, and which Target it means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.issuing.issuing_environment import SPEC
from vnode.api import keys, kinds
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.issuing import request
from vnode.issuing.request import RequestedRole

PROFILE = {"clusterProfile": {"namespace": "fleet", "name": "east"}}


def obj(**spec: object) -> Object:
    metadata = {"name": "queue", "namespace": "team", "uid": "u-1"}
    return {"metadata": metadata, "spec": {**SPEC, **spec}}


def target(name: str, namespace: str = "", **spec: object) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


TARGETS = [
    target("east", "other", **PROFILE),
    target("east", "team"),
    target("mine", "team", **PROFILE),
    target("made", "", **PROFILE),
    target("east"),
]


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"targetRef": {"kind": "ClusterTarget", "name": "east"}}, TargetKey("", "east")),
        ({"targetRef": {"kind": "Target", "name": "east"}}, TargetKey("team", "east")),
        ({"targetRef": {"kind": "Target", "name": "made"}}, None),
        ({"targetClusterProfile": {"name": "east", "namespace": "fleet"}}, TargetKey("", "made")),
        ({"targetClusterProfile": {"name": "east"}}, None),
    ],
)
def test_the_target_is_of_the_requests_namespace_or_of_all(
    spec: Object, found: TargetKey | None
) -> None:
    decoded = request.decode(obj(**{"targetRef": None, **spec}))
    assert request.find_target(decoded.cluster, "team", TARGETS) == found


def test_a_target_of_another_namespace_is_never_meant() -> None:
    decoded = request.decode(obj(targetRef={"kind": "Target", "name": "east"}))
    assert decoded.cluster.namespace == "team"
    profile = request.decode(obj(targetRef=None, targetClusterProfile={"name": "x"})).cluster
    assert request.find_target(profile, "team", [target("a", "other", **PROFILE)]) is None


@pytest.mark.parametrize(
    ("asked", "longest", "life"),
    [(3600, 86400, 3600), (86400, 3600, 3600), (None, 86400, 86400), (1, 86400, 600)],
)
def test_no_token_lives_longer_than_is_configured(
    asked: int | None, longest: int, life: int
) -> None:
    assert request.decode(obj(expirationSeconds=asked), longest).life == life


@given(st.text(min_size=1, max_size=253), st.text(max_size=63), st.uuids(), st.uuids())
def test_names_of_bindings_fit_and_differ(name: str, namespace: str, one, other) -> None:
    role, elsewhere = RequestedRole(namespace, name, ()), RequestedRole(namespace + "x", name, ())
    first = request.decode({**obj(), "metadata": {"uid": str(one), "namespace": "team"}})
    second = request.decode({**obj(), "metadata": {"uid": str(other), "namespace": "team"}})
    found = {each.binding_name(where) for each in (first, second) for where in (role, elsewhere)}
    assert len(found) == (4 if one != other else 2)
    assert all(len(each) <= 253 for each in found)
    assert first.label == f"{keys.ISSUED_FOR}{one}"
    assert len(str(one)) <= 63


def test_the_kinds_follow_from_the_namespace() -> None:
    assert RequestedRole("work", "a", ()).binding_kind is kinds.ROLE_BINDINGS
    assert RequestedRole("", "a", ()).binding_kind is kinds.CLUSTER_ROLE_BINDINGS
