"""Policies as they are read, whatever is wrong with them."""

from __future__ import annotations

import re

import pytest

from tests.unit.overrides.making import policy
from vnode.api.objects import Object
from vnode.api.target_key import TargetKey
from vnode.overrides.policy import parse

GPU = TargetKey("ns", "gpu")
FINE: Object = {"labels": {"a": "1"}}


def test_a_rule_is_for_the_targets_that_it_names_in_any_way() -> None:
    for name in ("gpu", "ns/gpu", GPU.node_name):
        (rule,) = parse(policy({**FINE, "clusters": {"names": [name]}})).rules
        assert rule.clusters.has(GPU, {})
        assert not rule.clusters.has(TargetKey("ns", "cpu"), {})


def test_names_and_selector_must_both_hold_and_none_is_all() -> None:
    clusters = {"names": ["gpu"], "selector": {"matchLabels": {"zone": "a"}}}
    (rule,) = parse(policy({**FINE, "clusters": clusters})).rules
    assert rule.clusters.has(GPU, {"zone": "a"})
    assert not rule.clusters.has(GPU, {"zone": "b"})
    assert not rule.clusters.has(TargetKey("", "cpu"), {"zone": "a"})
    (rule,) = parse(policy(FINE)).rules
    assert rule.clusters.has(GPU, {})


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({**FINE, "hooks": []}, r"spec.rules\[1\]: .*unknown field `hooks` .*newer agent"),
        ({"image": "x"}, r"spec.rules\[1\]"),
        ({}, r"spec.rules\[1\]: it changes nothing"),
        ("x", r"spec.rules\[1\]"),
    ],
)
def test_a_bad_rule_stays_as_one_and_leaves_the_others(rule: Object, why: str) -> None:
    found = parse(policy(FINE, rule))
    good, bad = found.rules
    assert (good.problem, bad.rule) == ("", None)
    assert good.rule is not None
    assert re.search(why, found.problem)
    assert bad.clusters.has(GPU, {})


def test_a_bad_rule_is_for_its_own_targets_if_they_can_be_read() -> None:
    (rule,) = parse(policy({"clusters": {"names": ["cpu"]}, "image": "x"})).rules
    assert rule.problem
    assert not rule.clusters.has(GPU, {})
    (rule,) = parse(policy({**FINE, "clusters": {"names": "cpu"}})).rules
    assert rule.problem
    assert rule.clusters.has(GPU, {})


def test_a_policy_with_an_unknown_field_keeps_its_selector_and_refuses_all() -> None:
    found = parse(policy(FINE, selector={"matchLabels": {"a": "1"}}, mode="x"))
    assert "unknown field `mode`" in found.problem
    assert found.selector.matches({"a": "1"})
    assert not found.selector.matches({})


@pytest.mark.parametrize(
    "selector", [{"matchExpressions": [{"key": "a", "operator": "In"}]}, {"labels": {}}]
)
def test_a_selector_that_cannot_be_read_may_mean_any_pod(selector: Object) -> None:
    found = parse(policy(FINE, selector=selector))
    assert "spec.selector" in found.problem
    assert found.selector.matches({})
    assert all(rule.rule is None for rule in found.rules)


def test_a_policy_of_the_cluster_says_in_which_namespaces_labels_count() -> None:
    found = parse(policy(FINE, namespace="", namespaces=["a", "b"]))
    assert not found.problem
    assert found.selects("a", {})
    assert not found.selects("c", {})
    assert parse(policy(FINE, namespace="")).selects("c", {})


@pytest.mark.parametrize(
    ("namespace", "namespaces", "why"),
    [
        ("", [], "spec.namespaces is empty"),
        ("", "a", "spec.namespaces"),
        ("ns", ["a"], "spec.namespaces is for ClusterOverridePolicies"),
    ],
)
def test_namespaces_that_make_no_sense_refuse_all_pods_that_may_be_meant(
    namespace: str, namespaces: object, why: str
) -> None:
    found = parse(policy(FINE, namespace=namespace, namespaces=namespaces))
    assert why in found.problem
    assert found.selects("ns", {})


def test_a_policy_with_an_unknown_field_keeps_its_namespaces() -> None:
    found = parse(policy(FINE, namespace="", namespaces=["a"], mode="x"))
    assert found.problem
    assert found.selects("a", {})
    assert not found.selects("b", {})


def test_what_is_no_policy_at_all_is_read_too() -> None:
    assert parse({"metadata": {"name": "x"}}).problem
    assert parse({"metadata": {"name": "x"}, "spec": "y"}).problem


def test_policies_of_the_cluster_come_first_then_by_priority_and_name() -> None:
    made = [
        policy(FINE, name="b"),
        policy(FINE, name="a", priority=5),
        policy(FINE, name="z", namespace="", priority=9),
        policy(FINE, name="a2"),
    ]
    ordered = sorted(map(parse, made), key=lambda each: each.order)
    assert [each.key for each in ordered] == ["z", "ns/a2", "ns/b", "ns/a"]
    assert ordered[0].name == "clusteroverridepolicy/z"
    assert ordered[1].name == "overridepolicy/ns/a2"
