"""Policies as users write them become values, or an error that says what to change."""

from __future__ import annotations

from typing import Any

import pytest

from vnode.api import properties, selectors
from vnode.api.durations import seconds
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.placement.policies.decoding import decode, named
from vnode.planning.failover import Failover, PreservedValue, Purge
from vnode.planning.move_policy import (
    Drain,
    Failback,
    FailbackMode,
    IntOrPercent,
    RescheduleTrigger,
)
from vnode.planning.policy import Clusters, Mode, Overflow, PlacementTarget, Policy

LATER = "2026-08-01T12:00:00Z"


def policy(namespace: str = "team-a", **spec: Any) -> Object:
    return {"metadata": {"name": "web", "namespace": namespace}, "spec": spec}


def by_name(name: str) -> Clusters:
    return Clusters(names=frozenset((name,)))


def test_an_empty_policy_spreads_pods_that_name_it_over_all_clusters() -> None:
    assert decode(policy()) == Policy("placementpolicy/web", "team-a", None)
    assert decode(policy("")).name == "clusterplacementpolicy/web"


@pytest.mark.parametrize(
    ("spec", "joinable"),
    [({}, True), ({"selector": {}}, False), ({"selector": {}, "joinable": True}, True)],
)
def test_pods_may_join_a_cluster_wide_policy_that_says_so_or_selects_none(
    spec: Object, joinable: bool
) -> None:
    found = decode(policy("", namespaces=["team-a"], **spec))
    assert (found.joinable, found.namespaces) == (joinable, frozenset({"team-a"}))
    assert decode(policy(selector={})).joinable


@pytest.mark.parametrize(
    ("namespace", "spec", "message"),
    [
        ("team-a", {"joinable": True}, "spec.joinable is for ClusterPlacementPolicies"),
        ("team-a", {"namespaces": ["b"]}, "spec.namespaces is for ClusterPlacementPolicies"),
        ("", {"joinable": False}, "it is for no pod"),
    ],
)
def test_whose_pods_it_is_for_is_checked(namespace: str, spec: Object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        decode(policy(namespace, **spec))


def test_every_field_has_its_place() -> None:
    found = decode(
        policy(
            selector={"matchLabels": {"app": "web"}},
            priority=3,
            groupBy="example.com/set",
            clusters={
                "selector": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]},
                "names": ["a", "b"],
                "exclude": ["c"],
                "properties": [{"name": "mem", "operator": "Gt", "values": ["1Gi"]}],
            },
            mode="Fill",
            targets=[
                {"cluster": "a", "weight": 2, "priority": 1, "minReplicas": 1, "maxReplicas": 4},
                {"selector": {"matchLabels": {"cloud": "x"}}},
            ],
            overflow={
                "afterUnschedulableFor": "1m30s",
                "keepUnschedulable": False,
                "maxCandidates": 2,
            },
            failback={"mode": "Probe", "stabilization": "90s", "maxConcurrent": "25%"},
            drain=[{"cluster": "b"}, {"cluster": "a", "maxReplicas": 2, "until": LATER}],
            reschedule={"when": ["PolicyChanged", "ClusterJoined"]},
            failover={
                "tolerationSeconds": 60,
                "purge": "Graceful",
                "gracePeriodSeconds": 90,
                "maxEvictionsPerMinute": 5,
                "preserve": [
                    {"annotation": "example.com/at", "fromAnnotation": "at"},
                    {"annotation": "ip", "fromStatus": "podIPs[0].ip"},
                ],
            },
        )
    )
    assert found == Policy(
        "placementpolicy/web",
        "team-a",
        selectors.parse("app=web"),
        Mode.FILL,
        priority=3,
        group_by="example.com/set",
        clusters=Clusters(
            selectors.parse("gpu"),
            frozenset(("a", "b")),
            frozenset(("c",)),
            frozenset((properties.compiled("mem", "Gt", ["1Gi"]),)),
        ),
        targets=(
            PlacementTarget(by_name("a"), 2, 1, 1, 4),
            PlacementTarget(Clusters(selectors.parse("cloud=x"))),
        ),
        overflow=Overflow(90.0, 2, keep_unschedulable=False),
        failback=Failback(FailbackMode.PROBE, 90.0, IntOrPercent(25, is_percentage=True)),
        drains=(Drain("b"), Drain("a", 2, 1785585600.0)),
        reschedule=frozenset((RescheduleTrigger.POLICY, RescheduleTrigger.CLUSTERS)),
        failover=Failover(
            60.0,
            Purge.GRACEFUL,
            90.0,
            5,
            (
                PreservedValue("example.com/at", "at"),
                PreservedValue("ip", from_status=("podIPs", 0, "ip")),
            ),
        ),
    )
    assert list(named(found)) == [
        ("spec.clusters.names", "a"),
        ("spec.clusters.names", "b"),
        ("spec.targets[0].cluster", "a"),
        ("spec.drain[0].cluster", "b"),
        ("spec.drain[1].cluster", "a"),
    ]


@pytest.mark.parametrize(
    ("failover", "seconds"),
    [
        (None, 600),
        ({}, 600),
        ({"gracePeriodSeconds": 5}, 5),
        ({"purge": "Immediate"}, 0),
        ({"purge": "Never", "gracePeriodSeconds": 5}, 5),
    ],
)
def test_how_long_moved_pods_wait_for_replacements(failover: Object | None, seconds: int) -> None:
    found = decode(policy(mode="Any", failover=failover))
    assert found.replacement_grace == seconds


def preserve(*entries: Object) -> Object:
    return {"failover": {"preserve": entries}}


A = {"cluster": "a"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"weights": []}, 'spec: unknown field "weights"; known are: selector, namespaces'),
        ({"targets": [{**A, "min": 1}]}, r'spec.targets: unknown field "min"; known are: cluster'),
        ({"mode": "Pack"}, "Invalid enum value 'Pack' - at `\\$.mode`"),
        ({"targets": [{}]}, r"spec.targets\[0\]: give exactly one of cluster and selector"),
        ({"targets": [{**A, "selector": {}}]}, "give exactly one of cluster and selector"),
        ({"targets": [{"cluster": ""}]}, r'spec.targets\[0\].cluster is ""'),
        ({"targets": [{**A, "weight": -1}]}, r"`int` >= 0 - at `\$.targets\[0\].weight`"),
        ({"targets": [A, A]}, r"spec.targets\[1\]: an earlier entry is for a: leave one out"),
        ({"targets": [{**A, "minReplicas": 3, "maxReplicas": 2}]}, "minReplicas 3 is above max"),
        ({"targets": [A], "clusters": {"exclude": ["a"]}}, "spec.clusters.exclude has a"),
        ({"clusters": {"names": ["a"], "exclude": ["a"]}}, "a is in names and in exclude"),
        ({"mode": "Any", "targets": [{**A, "weight": 1}]}, "weight means nothing in mode Any"),
        ({"mode": "Single", "targets": [{**A, "minReplicas": 0}]}, "choose Spread or Fill"),
        (
            {"failover": {"purge": "Immediate", "gracePeriodSeconds": 1}},
            "spec.failover.gracePeriodSeconds means nothing with purge Immediate",
        ),
        (
            {"failover": {"purge": "Never", "maxEvictionsPerMinute": 1}},
            "spec.failover.maxEvictionsPerMinute means nothing with purge Never",
        ),
        (
            {"failover": {"purge": "Never", "tolerationSeconds": 1}},
            "spec.failover.tolerationSeconds means nothing with purge Never",
        ),
        (preserve({"annotation": "b", "fromStatus": ".x"}), r"preserve\[0\].fromStatus is no path"),
        (preserve({"annotation": "b"}), "give exactly one of fromAnnotation and fromStatus"),
        (preserve({"annotation": "b/", "fromStatus": "x"}), "no name of an annotation"),
        (preserve({"annotation": "vnode.dev/x", "fromStatus": "x"}), "targets do not get it"),
        (
            preserve(*[{"annotation": "b", "fromStatus": "x"}] * 2),
            r"\[1\]: an earlier entry is for b",
        ),
        ({"failover": {"maxEvictionsPerMinute": 0}}, r"`int` >= 1 - at `\$.failover.max"),
        ({"mode": "Single", "overflow": {}}, "spec.overflow means nothing in mode Single"),
        ({"overflow": {"afterUnschedulableFor": "soon"}}, '"soon" is no duration: write 90s'),
        ({"overflow": {"maxCandidates": 0}}, "`int` >= 1"),
        ({"overflow": {"keepUnschedulable": "yes"}}, "Expected `bool`"),
        ({"mode": "Any", "failback": {}}, "spec.failback means nothing in mode Any"),
        ({"mode": "Any", "drain": [A]}, "spec.drain means nothing in mode Any"),
        ({"mode": "Single", "failback": {"mode": "Probe"}}, "spec.failback.mode means nothing in"),
        ({"failback": {"maxConcurrent": 0}}, '"0" is no number from 1 to 1000 and no percentage'),
        ({"failback": {"maxConcurrent": "110%"}}, "write 2, or 10%"),
        ({"failback": {"stabilization": "5"}}, '"5" is no duration'),
        ({"drain": [A, A]}, r"spec.drain\[1\]: an earlier entry is for a: leave one out"),
        ({"drain": [{"cluster": ""}]}, r'spec.drain\[0\]: cluster is ""'),
        ({"drain": [{**A, "until": "2026-01-31T12:00:00"}]}, "write 2026-01-31T12:00:00Z"),
        ({"reschedule": {"when": ["Always"]}}, "Invalid enum value 'Always'"),
        ({"selector": {"matchLabel": {}}}, 'spec.selector: unknown field "matchLabel"'),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            'spec.selector: selector on "a": In needs values',
        ),
        (
            {"clusters": {"properties": [{"name": "m", "operator": "Gt", "values": ["x"]}]}},
            'spec.clusters.properties: property "m": "x" is not a quantity',
        ),
        ({"mode": "\ud800"}, "spec: has text that is no Unicode"),
    ],
)
def test_what_is_wrong_is_refused_with_the_cure(spec: Object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        decode(policy(**spec))


@pytest.mark.parametrize("spec", [None, [], "x", 3])
def test_a_spec_of_any_type_is_no_worse_than_wrong(spec: Any) -> None:
    obj = {"metadata": {"name": "web"}, "spec": spec}
    if spec is None:
        assert decode(obj).mode is Mode.SPREAD
    else:
        with pytest.raises(ConfigError, match="Expected `object`"):
            decode(obj)


@pytest.mark.parametrize(
    ("text", "length"), [("90s", 90), ("2m", 120), ("1h30m", 5400), ("0s", 0), ("1h1m1s", 3661)]
)
def test_durations_are_those_of_go(text: str, length: float) -> None:
    assert seconds(text, "x") == length


@pytest.mark.parametrize("text", ["", "1", "m", "1m1h", "1.5m", "-1s", "1d", "9999999h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"x: .* is no duration"):
        seconds(text, "x")


@pytest.mark.parametrize(
    ("portion", "replicas", "count"),
    [
        (IntOrPercent(), 100, 1),
        (IntOrPercent(3), 1, 3),
        (IntOrPercent(25, is_percentage=True), 10, 2),
        (IntOrPercent(10, is_percentage=True), 3, 1),
    ],
)
def test_a_portion_is_at_least_one(portion: IntOrPercent, replicas: int, count: int) -> None:
    assert portion.of(replicas) == count
