"""What a policy makes of the virtual nodes that exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import selectors
from vnode.planning.move_policy import Drain
from vnode.planning.policy import Clusters, Mode, PlacementTarget, Policy
from vnode.planning.seats import plan


@dataclass(frozen=True)
class Node:
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


NODES = (Node("c1"), Node("c2", {"cloud": "a"}), Node("c3", {"cloud": "a"}))
ALL = Clusters()
CLOUD = Clusters(selectors.parse("cloud=a"))


def policy(*targets: PlacementTarget, mode: Mode = Mode.SPREAD, clusters: Clusters = ALL) -> Policy:
    return Policy("placementpolicy/web", "default", None, mode, clusters=clusters, targets=targets)


def named(name: str, weight: int | None = None, **fields: int) -> PlacementTarget:
    return PlacementTarget(Clusters(names=frozenset((name,))), weight, **fields)


def test_without_targets_all_clusters_have_equal_rights() -> None:
    assert {(s.node, s.weight) for s in policy().shares(NODES)} == {("c1", 1), ("c2", 1), ("c3", 1)}


def test_only_clusters_of_the_policy_have_a_share() -> None:
    only = Clusters(selectors.parse("cloud=a"), exclude=frozenset(("c3",)))
    assert [share.node for share in policy(clusters=only).shares(NODES)] == ["c2"]


def test_the_first_entry_that_includes_a_cluster_counts() -> None:
    cloud = PlacementTarget(Clusters(selectors.parse("cloud=a")), weight=1)
    shares = policy(named("c2", 5), cloud).shares(NODES)
    assert [(share.node, share.weight) for share in shares] == [("c2", 5), ("c3", 1)]


def test_without_weights_capacity_weighs() -> None:
    shares = policy(named("c1"), named("c2")).shares(NODES, {"c1": 30, "c2": 10})
    assert [share.weight for share in shares] == [30, 10]


def test_without_weights_a_cluster_without_capacity_comes_after_the_others_of_its_tier() -> None:
    better = policy(named("c1", tier=1), named("c2", tier=1), named("c3"))
    shares = better.shares(NODES, {"c1": 2, "c2": 0, "c3": 9})
    assert plan(5, shares, "web").planned == {"c1": 5}
    assert [s.node for s in sorted(shares, key=lambda s: -s.tier)] == ["c1", "c2", "c3"]
    equal = policy().shares(NODES[:2], {})
    assert plan(4, equal, "web").planned == {"c1": 2, "c2": 2}


def test_fill_takes_one_entry_after_the_other() -> None:
    fill = policy(named("c2", maximum=3), named("c1"), mode=Mode.FILL)
    assert plan(5, fill.shares(NODES), "web").planned == {"c2": 3, "c1": 2}


@pytest.mark.parametrize(
    ("fill", "order"),
    [
        (policy(mode=Mode.FILL), ["c1", "c2", "c3"]),
        (policy(clusters=Clusters(exclude=frozenset(("c2",))), mode=Mode.FILL), ["c1", "c3"]),
        (policy(named("c3"), PlacementTarget(ALL), mode=Mode.FILL), ["c3", "c1", "c2"]),
        (policy(PlacementTarget(CLOUD), named("c1"), mode=Mode.FILL), ["c2", "c3", "c1"]),
        (
            policy(PlacementTarget(CLOUD), named("c1", tier=1), mode=Mode.FILL),
            ["c1", "c2", "c3"],
        ),
    ],
)
def test_fill_takes_the_clusters_of_one_entry_by_name(fill: Policy, order: list[str]) -> None:
    shares = fill.shares(NODES)
    assert [s.node for s in sorted(shares, key=lambda s: -s.tier)] == order
    assert plan(16, shares, "web").planned == {order[0]: 16}
    full = [replace(share, maximum=3) for share in shares]
    assert plan(4, full, "web").planned == {order[0]: 3, order[1]: 1}


def test_clusters_with_a_weight_share_what_fill_leaves_of_their_priority() -> None:
    fill = policy(named("c1", maximum=2), PlacementTarget(CLOUD, 1), mode=Mode.FILL)
    assert plan(6, fill.shares(NODES), "web").planned == {"c1": 2, "c2": 2, "c3": 2}


@given(
    st.permutations(["a", "b", "c", "d", "e"]),
    st.lists(st.none() | st.integers(1, 4), min_size=5, max_size=5),
    st.integers(0, 30),
)
def test_fill_begins_no_cluster_before_the_one_before_it_is_full(
    names: list[str], maximums: list[int | None], replicas: int
) -> None:
    nodes = [Node(name) for name in names]
    given = zip("abcde", maximums, strict=True)
    fill = policy(*(named(n, maximum=m) for n, m in given if m), mode=Mode.FILL)
    shares = sorted(fill.shares(nodes), key=lambda share: -share.tier)
    every = policy(mode=Mode.FILL).shares(nodes)
    assert [s.node for s in sorted(every, key=lambda s: -s.tier)] == list("abcde")
    planned = plan(replicas, shares, "w").planned
    counts = [planned.get(share.node, 0) for share in shares]
    for before, share, count in zip(counts, shares, counts[1:], strict=False):
        assert not count or before == share.maximum


def test_fill_keeps_its_order_whatever_a_cluster_has_free() -> None:
    shares = policy(named("c2"), named("c1"), mode=Mode.FILL).shares(NODES, {"c1": 9, "c2": 0})
    assert plan(3, shares, "web").planned == {"c2": 3}


def test_fill_keeps_to_tiers_before_the_order_of_the_list() -> None:
    fill = policy(named("c2"), named("c1", tier=1, maximum=1), mode=Mode.FILL)
    assert plan(3, fill.shares(NODES), "web").planned == {"c1": 1, "c2": 2}


def test_a_drain_caps_the_share_whatever_its_minimum() -> None:
    spread = policy(named("c1", 1, minimum=3), named("c2", 1), named("c3", 1, maximum=1))
    drained = replace(spread, drains=(Drain("c1", 1), Drain("c3", 4), Drain("c9")))
    assert plan(9, drained.shares(NODES), "web").planned == {"c1": 1, "c2": 7, "c3": 1}
    assert [drained.drained_to(node) for node in NODES] == [1, None, 4]
