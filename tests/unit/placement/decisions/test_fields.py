"""What a policy says of decisions becomes a value, or an error that says what to change."""

from __future__ import annotations

from typing import Any

import pytest

from tests import decisions
from tests.decisions import OCM, SIG
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.placement.policies.decoding import decode
from vnode.planning.cluster_decision import Publishing


def policy(namespace: str = "team-a", **spec: Any) -> Object:
    return {"metadata": {"name": "web", "namespace": namespace}, "spec": spec}


def following(reference: Object, namespace: str = "team-a") -> str:
    """Return the decision that a policy follows, as messages have it."""
    found = decode(policy(namespace, clusters={"decisionRef": reference})).decision
    assert found is not None
    assert not found.is_known
    return str(found.reference)


def test_decisions_of_both_kinds_may_be_followed() -> None:
    gpu = decisions.reference(SIG, "gpu")
    assert following(gpu) == "placementdecision/team-a/gpu"
    assert following(gpu | {"namespace": "team-a"}) == "placementdecision/team-a/gpu"
    gpu = decisions.reference(OCM, "gpu", namespace="fleet")
    assert following(gpu, "") == "placement/fleet/gpu"
    assert decode(policy()).decision is None


@pytest.mark.parametrize(
    ("reference", "namespace", "message"),
    [
        ({"kind": "PlacementDecision", "apiGroup": OCM.group}, "a", "cannot be followed"),
        ({"kind": "Placement", "apiGroup": SIG.group}, "a", "Placement of cluster.open-"),
        ({"name": "Web"}, "a", "'Web' is no name"),
        ({"namespace": "fleet"}, "a", "own namespace only"),
        ({}, "", "namespace is missing"),
        ({"namespace": "a/b"}, "", "no name of a namespace"),
        ({"more": ""}, "a", "unknown field"),
    ],
)
def test_what_is_wrong_is_refused_with_the_cure(
    reference: Object, namespace: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        following(decisions.reference(SIG, "gpu") | reference, namespace)


def test_a_decision_is_published_under_the_name_of_its_policy_or_another() -> None:
    assert decode(policy()).publishing is None
    assert decode(policy(publish={})).publishing == Publishing("team-a", "web")
    assert decode(policy(publish={"name": "gpu"})).publishing == Publishing("team-a", "gpu")
    found = decode(policy("", publish={"namespace": "fleet"}))
    assert found.publishing == Publishing("fleet", "web")


@pytest.mark.parametrize(
    ("publish", "namespace", "message"),
    [
        ({"name": "x" * 64}, "a", "at most 63 characters"),
        ({"name": "Web"}, "a", "cannot be the name"),
        ({"namespace": "fleet"}, "a", "own namespace only"),
        ({}, "", "namespace is missing"),
    ],
)
def test_what_cannot_be_published_is_refused(publish: Object, namespace: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        decode(policy(namespace, publish=publish))
