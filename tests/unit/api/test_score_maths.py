"""Scores of amounts, and one number of several scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import score_maths

SCORES = st.integers(-100, 100)
WEIGHTS = st.integers(-10, 10)


@pytest.mark.parametrize(
    ("most", "amount", "score"),
    [
        *((100, amount, score) for amount, score in ((0, -100), (1, -98), (6, -88), (40, -20))),
        *((100, amount, score) for amount, score in ((100, 100), (101, 100), (-3, -100))),
        *((20, amount, score) for amount, score in ((1, -90), (2, -80), (3, -70), (10, 0))),
        *((20_000, amount, score) for amount, score in ((12_500, 25), (6_000, -40), (8_000, -20))),
    ],
)
def test_absolute_scores_are_those_of_the_published_formula(
    most: int, amount: int, score: int
) -> None:
    assert score_maths.absolute(amount, most) == score


def test_relative_scores_reach_from_the_least_to_the_most() -> None:
    def of(*amounts: int) -> list[int]:
        return list(score_maths.relative({str(a): a for a in amounts}).values())

    assert of(4, 8, 16) == [-100, -33, 100]
    assert of(10, 20, 33, 40) == [-100, -33, 53, 100]
    assert of(7) == [100]
    assert score_maths.relative({}) == {}


def test_weights_and_scores_give_one_number() -> None:
    assert score_maths.combined([(1, -70)]) == 15
    assert score_maths.combined([(1, -80)]) == 10
    assert score_maths.combined([(3, 40), (1, -100)]) == 53
    assert score_maths.combined([(-1, -70)]) == 85
    assert score_maths.combined([]) == 50


@given(st.lists(st.tuples(WEIGHTS, SCORES)))
def test_one_number_is_within_the_range_and_turns_with_its_weights(
    given_: list[tuple[int, int]],
) -> None:
    made = score_maths.combined(given_)
    assert 0 <= made <= 100
    turned = score_maths.combined([(-weight, score) for weight, score in given_])
    assert made + turned in (100, 101)  # a half is rounded up twice


@given(st.lists(st.tuples(WEIGHTS, SCORES), min_size=1), SCORES, SCORES)
def test_a_better_score_makes_nothing_worse(
    given_: list[tuple[int, int]], one: int, other: int
) -> None:
    weight = given_[0][0]
    made = [score_maths.combined([(weight, score), *given_[1:]]) for score in sorted((one, other))]
    assert made == sorted(made, reverse=weight < 0)


@given(st.integers(1, 10**15), st.integers(-(10**15), 10**16), st.integers(0, 10**15))
def test_more_is_never_worse(most: int, amount: int, more: int) -> None:
    scores = [score_maths.absolute(each, most) for each in (amount, amount + more)]
    assert scores == sorted(scores)
    assert all(-100 <= score <= 100 for score in scores)


@given(st.dictionaries(st.text(), st.integers(-(10**18), 10**18), min_size=1))
def test_relative_scores_keep_the_order(amounts: dict[str, int]) -> None:
    scores = score_maths.relative(amounts)
    assert max(scores.values()) == 100
    assert min(scores.values()) == (-100 if len(set(amounts.values())) > 1 else 100)
    ordered = [scores[name] for name in sorted(amounts, key=lambda name: amounts[name])]
    assert ordered == sorted(ordered)
