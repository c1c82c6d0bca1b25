"""Plans: examples, and properties against a slow reference."""

from __future__ import annotations

import dataclasses
from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests import computing
from vnode.planning.seats import Seats, Share, plan, plan_once

THREE = (
    Share("c1", weight=40, minimum=2),
    Share("c2", weight=40, minimum=2),
    Share("c3", weight=20, minimum=2),
)


@st.composite
def shares(draw: st.DrawFn) -> tuple[Share, ...]:
    made = []
    for number in range(draw(st.integers(1, 6))):
        maximum = draw(st.none() | st.integers(0, 12))
        made.append(
            Share(
                f"c{number}",
                weight=draw(st.integers(0, 5)),
                tier=draw(st.integers(0, 2)),
                minimum=draw(st.integers(0, 4)),
                maximum=maximum,
            )
        )
    return tuple(made)


def counts(replicas: int, given: tuple[Share, ...]) -> tuple[int, ...]:
    planned = plan(replicas, given, "web").planned
    return tuple(planned.get(share.node, 0) for share in given)


def test_shares_by_weight_above_the_minimums() -> None:
    assert [counts(n, THREE) for n in (10, 15, 20)] == [(4, 4, 2), (6, 6, 3), (8, 8, 4)]


def test_equal_weights_give_each_cluster_some() -> None:
    equal = tuple(Share(f"c{number}") for number in range(3))
    assert sorted(counts(4, equal), reverse=True) == [2, 1, 1]


def test_a_tier_is_filled_before_the_next() -> None:
    prepaid, cloud = Share("prepaid", tier=2, maximum=6), Share("cloud", tier=1)
    assert counts(10, (cloud, prepaid)) == (4, 6)
    assert counts(5, (cloud, prepaid)) == (0, 5)


def test_the_minimum_of_a_lower_tier_comes_before_the_rest_of_a_higher_one() -> None:
    assert counts(3, (Share("a", tier=1), Share("b", minimum=2))) == (1, 2)


def test_while_replicas_last_the_minimums_of_better_clusters_are_kept() -> None:
    few = (Share("a", weight=1, minimum=2), Share("b", weight=9, minimum=2))
    assert counts(3, few) == (1, 2)


def test_what_the_maximums_leave_over_is_told() -> None:
    assert plan(9, (Share("a", maximum=4), Share("b", maximum=2)), "web").unplaced == 3


def test_workloads_of_one_replica_do_not_all_go_to_one_cluster() -> None:
    equal = tuple(Share(f"c{number}") for number in range(3))
    first = Counter(next(iter(plan(1, equal, f"web-{n}").planned)) for n in range(300))
    assert min(first[share.node] for share in equal) > 60


@given(shares(), st.integers(0, 40))
def test_a_plan_keeps_its_promises(given_shares: tuple[Share, ...], replicas: int) -> None:
    made = plan(replicas, given_shares, "web")
    assert sum(made.planned.values()) + made.unplaced == replicas
    for share in given_shares:
        has = made.planned.get(share.node, 0)
        assert share.maximum is None or has <= share.maximum

    floors = sum(
        min(s.minimum, s.minimum if s.maximum is None else s.maximum) for s in given_shares
    )
    if replicas >= floors:
        for share in given_shares:
            floor = share.minimum if share.maximum is None else min(share.minimum, share.maximum)
            assert made.planned.get(share.node, 0) >= floor


@given(shares(), st.integers(0, 40))
def test_another_replica_changes_nothing_for_the_others(
    given_shares: tuple[Share, ...], replicas: int
) -> None:
    seats = Seats(given_shares, "web")
    more, fewer = seats.plan(replicas + 1), seats.plan(replicas)
    assert fewer == plan(replicas, given_shares, "web")
    assert sum((Counter(more.planned) - Counter(fewer.planned)).values()) <= 1
    assert not Counter(fewer.planned) - Counter(more.planned)


@given(shares(), st.permutations(range(6)), st.integers(0, 40))
def test_the_order_of_the_clusters_does_not_matter(
    given_shares: tuple[Share, ...], order: list[int], replicas: int
) -> None:
    turned = tuple(given_shares[i] for i in order if i < len(given_shares))
    assert plan(replicas, turned, "web") == plan(replicas, given_shares, "web")


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 60))
def test_shares_are_websters(weights: list[int], replicas: int) -> None:
    """No move of a seat from one cluster to another would make the quotients fairer."""
    made = plan(replicas, [Share(f"c{n}", weight=w) for n, w in enumerate(weights)], "web").planned
    has = [made.get(f"c{n}", 0) for n in range(len(weights))]
    taken = [Fraction(w, 2 * s - 1) for w, s in zip(weights, has, strict=True) if s]
    offered = [Fraction(w, 2 * s + 1) for w, s in zip(weights, has, strict=True)]
    assert not taken or min(taken) >= max(offered)


def test_a_large_plan_is_made_quickly() -> None:
    many = [Share(f"c{number}", weight=number + 1, minimum=2) for number in range(50)]
    with computing.within(0.05):
        plan(5000, many, "web")


@given(shares(), st.integers(0, 400), st.integers(1, 200_000))
def test_a_plan_that_is_made_at_once_is_that_of_the_order_of_seats(
    given_shares: tuple[Share, ...], replicas: int, scale: int
) -> None:
    wide = tuple(
        dataclasses.replace(s, weight=s.weight * scale if n % 2 else s.weight)
        for n, s in enumerate(given_shares)
    )
    for each in (given_shares, wide):
        seats = Seats(each, "web")
        assert plan_once(replicas, seats.ranked) == seats.plan(replicas)
