"""Taints of a ManagedCluster on its virtual node, beside those of everybody else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vnode.api import keys
from vnode.api.objects import Object
from vnode.nodes import member_taints

PEOPLE = {"key": "team", "value": "a", "effect": "NoSchedule"}
OURS = {"key": "gpu", "value": "full", "effect": "NoSchedule"}


def cluster(*taints: Any) -> Object:
    return {"metadata": {"name": "berlin"}, "spec": {"taints": list(taints)}}


def taint(key: Any, effect: Any = "NoSelect", value: Any = "") -> Object:
    return {"key": key, "effect": effect, "value": value, "timeAdded": "2026-01-01T00:00:00Z"}


def node(*taints: Object, record: str | None = None) -> Object:
    annotations = {} if record is None else {keys.MEMBER_TAINTS: record}
    return {"metadata": {"annotations": annotations}, "spec": {"taints": list(taints)}}


def merge(present: Object, *wanted: Object) -> tuple[list[Object], str] | None:
    return member_taints.merge(present, present["spec"]["taints"], wanted)


def test_effects_keep_new_pods_away_and_end_none() -> None:
    found = member_taints.of_cluster(
        cluster(taint("a"), taint("b", "NoSelectIfNew", "x"), taint("c", "PreferNoSelect"))
    )
    assert found == [
        {"key": "a", "effect": "NoSchedule"},
        {"key": "b", "effect": "NoSchedule", "value": "x"},
        {"key": "c", "effect": "PreferNoSchedule"},
    ]


def test_of_two_that_a_node_cannot_have_both_the_stronger_stays() -> None:
    found = member_taints.of_cluster(
        cluster(taint("a", "NoSelectIfNew", "weak"), taint("a", "NoSelect", "strong"))
    )
    assert found == [{"key": "a", "effect": "NoSchedule", "value": "strong"}]


@pytest.mark.parametrize(
    "hostile",
    [
        taint("cluster.open-cluster-management.io/unreachable"),
        taint("cluster.open-cluster-management.io/unavailable"),
        taint("node.kubernetes.io/unschedulable"),
        taint(keys.PROVIDER_LABEL, value="other"),
        taint("multicluster.admiralty.io/x"),
        taint("vnode.dev/x"),
        taint("a", "NoExecute"),
        taint("a", ["NoSelect"]),
        taint("a", value="no value"),
        taint("a", value=7),
        taint("a/b/c"),
        taint("x" * 64),
        taint(""),
        taint(None),
        "text",
    ],
)
def test_what_a_node_may_not_have_is_left_out(hostile: Any) -> None:
    assert member_taints.of_cluster(cluster(hostile, taint("b"))) == [
        {"key": "b", "effect": "NoSchedule"}
    ]


@pytest.mark.parametrize("spec", [{}, {"taints": None}, {"taints": "x"}, {"taints": {}}])
def test_a_cluster_without_taints_has_none(spec: Object) -> None:
    assert member_taints.of_cluster({"spec": spec}) == []


def test_there_is_a_most_of_them() -> None:
    found = member_taints.of_cluster(cluster(*(taint(f"k{n}") for n in range(1000))))
    assert len(found) == member_taints.MOST


def test_they_come_go_and_leave_those_of_others() -> None:
    first = merge(node(keys.PROVIDER_TAINT, PEOPLE), OURS)
    assert first is not None
    taints, record = first
    assert taints == [keys.PROVIDER_TAINT, PEOPLE, OURS]
    assert json.loads(record) == [OURS]
    assert merge(node(*taints, record=record), OURS) is None
    assert merge(node(*taints, record=record)) == ([keys.PROVIDER_TAINT, PEOPLE], "")
    assert merge(node(PEOPLE)) is None


def test_a_value_that_changes_takes_the_place_of_the_former() -> None:
    new = {**OURS, "value": "empty"}
    assert merge(node(OURS, record=json.dumps([OURS])), new) == (
        [new],
        json.dumps([new], separators=(",", ":")),
    )


@pytest.mark.parametrize("value", ["full", "other"])
def test_a_taint_that_people_have_written_is_theirs(value: str) -> None:
    theirs = {**OURS, "value": value}
    assert merge(node(theirs), OURS) is None


@pytest.mark.parametrize("record", ["{", "7", "[7]", '[{"key": 1, "effect": "NoSchedule"}]'])
def test_a_broken_record_takes_nothing_away(record: str) -> None:
    assert merge(node(PEOPLE, record=record)) == ([PEOPLE], "")


def test_a_forged_record_takes_nothing_of_kubernetes_or_ours_away() -> None:
    lost = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    forged = json.dumps([lost, keys.PROVIDER_TAINT])
    assert merge(node(lost, keys.PROVIDER_TAINT, record=forged)) == (
        [lost, keys.PROVIDER_TAINT],
        "",
    )
