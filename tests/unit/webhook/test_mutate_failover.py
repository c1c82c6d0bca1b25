"""Failover: Kubernetes leaves the eviction of proxies to vnode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.webhook.mutated_pods import BASE, pod, proxied
from vnode.api import keys, taints
from vnode.planning.failover import Failover, PreservedValue


def _lasting(seconds: int | None, *failures: str) -> list[dict[str, Any]]:
    """Return tolerations as the API server gives them to pods without any."""
    base = {"operator": "Exists", "effect": "NoExecute"}
    more = {} if seconds is None else {"tolerationSeconds": seconds}
    return [{"key": f"node.kubernetes.io/{name}", **base, **more} for name in failures]


BOTH = ("not-ready", "unreachable")


@pytest.mark.parametrize("seconds", [300, None])
def test_a_pod_that_fails_over_by_its_policy_is_not_evicted_by_kubernetes(
    seconds: int | None,
) -> None:
    original = pod(tolerations=[] if seconds is None else _lasting(seconds, *BOTH))
    result = proxied(original, failover=Failover())
    assert result["spec"]["tolerations"] == [*BASE, *_lasting(None, "not-ready")]
    assert keys.FAILOVER in result["metadata"]["annotations"]
    assert proxied(result, failover=Failover()) == result
    assert proxied(result) == result  # another replica does not know the policy yet


@pytest.mark.parametrize(
    ("own", "seconds"),
    [
        (_lasting(30, *BOTH), 30),
        (_lasting(None, *BOTH), None),
        ([*_lasting(300, "not-ready"), *_lasting(5, "unreachable")], 5),
        ([*_lasting(20, "not-ready"), *_lasting(300, "unreachable")], 20),
        ([*_lasting(20, "not-ready"), *_lasting(5, "unreachable")], 20),
        ([*_lasting(None, "not-ready"), *_lasting(5, "unreachable")], None),
        (_lasting(5, "unreachable"), 5),
    ],
)
def test_what_a_user_says_of_failed_nodes_counts_for_lost_targets(
    own: list[dict[str, Any]], seconds: int | None
) -> None:
    result = proxied(pod(tolerations=own), failover=Failover())
    assert result["spec"]["tolerations"] == [*BASE, *_lasting(seconds, "not-ready")]
    assert keys.FAILOVER not in result["metadata"]["annotations"]
    assert proxied(result, failover=Failover()) == result
    saved = json.loads(result["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST])
    assert saved["spec"]["tolerations"] == own


@pytest.mark.parametrize("own", [_lasting(300, *BOTH), _lasting(5, *BOTH), []])
def test_an_outage_of_the_agents_evicts_no_proxy(own: list[dict[str, Any]]) -> None:
    """Whatever matches the taint first counts, as in Kubernetes."""
    text = "tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 5}]"
    for constraints in ({}, {keys.PROXY_CONSTRAINTS: text}):
        result = proxied(pod(constraints, tolerations=own))
        unreachable = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
        matching = [t for t in result["spec"]["tolerations"] if taints.tolerates(t, unreachable)]
        assert "tolerationSeconds" not in matching[0]


def test_a_proxy_that_tolerates_everything_is_left_alone() -> None:
    text = "tolerations: [{operator: Exists}]"
    original = pod({keys.PROXY_CONSTRAINTS: text}, tolerations=_lasting(300, *BOTH))
    result = proxied(original, failover=Failover())
    assert keys.FAILOVER not in result["metadata"]["annotations"]
    assert result["spec"]["tolerations"][-1:] == _lasting(300, "not-ready")


def test_the_annotation_alone_has_nobody_fail_over_sooner_or_later_than_the_default() -> None:
    result = proxied(pod({keys.FAILOVER: ""}, tolerations=_lasting(30, *BOTH)))
    assert keys.FAILOVER not in result["metadata"]["annotations"]
    assert result["spec"]["tolerations"] == [*BASE, *_lasting(30, "not-ready")]


def test_a_pod_of_a_replica_set_waits_for_the_state_of_the_one_that_it_replaces() -> None:
    failover = Failover(preserve=(PreservedValue("example.com/at", "example.com/at"),))
    gates = [{"name": "example.com/mine"}]
    for kind, expected in (("ReplicaSet", [*gates, {"name": keys.AWAITS_STATE}]), ("Job", gates)):
        original = pod({keys.PRESERVED_FROM: "a"}, schedulingGates=gates)
        original["metadata"]["ownerReferences"] = [{"kind": kind}]
        result = proxied(original, failover=failover)
        assert result["spec"]["schedulingGates"] == expected
        assert keys.PRESERVED_FROM not in result["metadata"]["annotations"]
        saved = json.loads(result["metadata"]["annotations"][keys.SOURCE_POD_MANIFEST])
        assert saved["spec"]["schedulingGates"] == gates
        assert proxied(result, failover=failover) == result
