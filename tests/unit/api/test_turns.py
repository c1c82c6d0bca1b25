"""Everybody has a turn in time, nobody idles while a key waits, and equals come in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api.turns import Turns

KEYS = st.sampled_from("abcd")
COSTS = st.sampled_from([0.001, 0.01, 0.1])
ALLOWANCE = 0.1


def take(turns: Turns[str], cost: float) -> str | None:
    key = turns.next()
    if key is not None:
        turns.pay(key, cost)

    return key


def test_equals_take_turns_in_the_order_in_which_they_came() -> None:
    turns: Turns[str] = Turns(ALLOWANCE)
    for key in "bca":
        turns.wait(key)

    assert [take(turns, 0.01) for _ in range(6)] == list("bcabca")


def test_who_costs_more_has_fewer_turns() -> None:
    turns: Turns[str] = Turns(ALLOWANCE)
    turns.wait("costly")
    turns.wait("cheap")
    costs = {"costly": 0.05, "cheap": 0.005}
    had = []
    for _ in range(220):
        key = turns.next()
        assert key is not None
        turns.pay(key, costs[key])
        had.append(key)

    assert 18 <= had.count("costly") <= 22


def test_who_comes_late_has_neither_saved_up_nor_lost_anything() -> None:
    turns: Turns[str] = Turns(ALLOWANCE)
    turns.wait("old")
    for _ in range(1000):
        take(turns, 0.01)

    turns.wait("new")
    had = [take(turns, 0.01) for _ in range(40)]
    assert had[0] == "new"
    assert 20 <= had.count("new") <= 30


def test_a_lower_rank_goes_first_until_its_allowance_is_used_up() -> None:
    turns: Turns[str] = Turns(ALLOWANCE)
    turns.wait("usual")
    turns.wait("urgent", -1)
    had = [take(turns, 0.01) for _ in range(40)]
    assert had[:9] == ["urgent"] * 9
    assert 19 <= had.count("usual") <= 21


def test_a_key_that_leaves_has_no_turn_and_is_charged_for_what_it_had() -> None:
    turns: Turns[str] = Turns(ALLOWANCE)
    turns.wait("a")
    assert take(turns, 0.05) == "a"
    turns.leave("a")
    assert turns.next() is None
    assert "a" not in turns
    turns.wait("b")
    turns.wait("a")
    assert turns.next() == "b"


@given(
    st.lists(st.tuples(KEYS, COSTS, st.sampled_from(["wait", "leave", "take"]))),
    st.dictionaries(KEYS, st.integers(-3, 3)),
)
def test_a_turn_is_taken_whenever_anybody_waits(
    steps: list[tuple[str, float, str]], ranks: dict[str, int]
) -> None:
    turns: Turns[str] = Turns(ALLOWANCE)
    waiting: set[str] = set()
    for key, cost, step in steps:
        if step == "wait":
            turns.wait(key, ranks.get(key, 0))
            waiting.add(key)
        elif step == "leave":
            turns.leave(key)
            waiting.discard(key)
        else:
            had = take(turns, cost)
            assert (had in waiting) if waiting else had is None

        assert len(turns) == len(waiting)


@given(
    st.lists(st.tuples(KEYS, COSTS, st.booleans()), max_size=200),
    st.dictionaries(KEYS, st.integers(-3, 3)),
    st.lists(COSTS, min_size=1, max_size=8),
)
def test_nobody_waits_for_more_than_two_allowances_of_each_other(
    before: list[tuple[str, float, bool]], ranks: dict[str, int], costs: list[float]
) -> None:
    """Whatever was before, whatever ranks the others have, and whatever their turns cost."""
    turns: Turns[str] = Turns(ALLOWANCE)
    for key, cost, stays in before:
        turns.wait(key, ranks.get(key, 0))
        take(turns, cost)
        if not stays:
            turns.leave(key)

    for key in "abcd":
        turns.wait(key, ranks.get(key, 0))

    turns.wait("late", 100)
    spent = dict.fromkeys("abcd", 0.0)
    for number in range(2000):
        following = turns.next()
        assert following is not None
        if following == "late":
            break

        cost = costs[number % len(costs)]
        turns.pay(following, cost)
        spent[following] += cost
    else:
        raise AssertionError("it has never had a turn")

    assert max(spent.values()) <= 2 * ALLOWANCE + max(costs)


def test_it_keeps_no_more_than_it_has_to() -> None:
    turns: Turns[str] = Turns(ALLOWANCE)
    for number in range(2000):
        turns.wait("stays", number)
        turns.wait(f"goes-{number}", 5000)
        turns.leave(f"goes-{number}")
        turns.pay(f"goes-{number}", 0.001)
        turns.next()
        turns.pay("stays", 0.01)

    assert len(turns._heap) < 200
    assert len(turns._paid) < 500
