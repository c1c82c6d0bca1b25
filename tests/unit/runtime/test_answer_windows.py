"""How many of something may be unanswered at once."""

from __future__ import annotations

import pytest

from vnode.runtime.answer_windows import AnswerWindows


def test_bad_answers_halve_it_and_good_ones_double_it_again():
    windows: AnswerWindows[str] = AnswerWindows(most=16, fewest=2, first=8)
    assert windows.of("a") == 8
    sizes = []
    for is_good in (False, False, False, True, True, True, True):
        windows.note("a", is_good=is_good)
        sizes.append(windows.of("a"))

    assert sizes == [4, 2, 2, 4, 8, 16, 16]
    assert windows.of("b") == 8


def test_who_is_forgotten_begins_anew():
    windows: AnswerWindows[str] = AnswerWindows(most=16, fewest=2, first=8)
    windows.note("a", is_good=False)
    windows.forget("a")
    windows.forget("a")
    assert windows.of("a") == 8


@pytest.mark.parametrize(("at_once", "least"), [(1, 0.1), (4, 0.1), (10, 0.5)])
def test_it_follows_how_long_answers_take(at_once: int, least: float):
    """Who works on `at_once` has those, and three that wait, however many it could have had."""
    windows: AnswerWindows[str] = AnswerWindows(most=32, fewest=2, first=32)
    for _ in range(50):
        took = least * max(1.0, windows.of("a") / at_once)
        windows.note_time("a", took, least, waiting=3)

    assert windows.of("a") == pytest.approx(at_once + 3, abs=1)


def test_answers_that_come_together_shrink_it_once():
    """Else a target that works on 16 of 32 has less to do than it could, and then too much."""
    windows: AnswerWindows[str] = AnswerWindows(most=32, fewest=2, first=32)
    for _ in range(32):
        windows.note_time("a", 1.0, 0.5, waiting=4, among=32)

    assert windows.of("a") == 20
    for _ in range(32):
        windows.note_time("a", 0.5 * 20 / 16, 0.5, waiting=4, among=20)

    assert windows.of("a") == 20


def test_it_grows_to_the_most_where_nobody_waits():
    windows: AnswerWindows[str] = AnswerWindows(most=32, fewest=2, first=4)
    for _ in range(20):
        windows.note_time("a", 0.1, 0.1, waiting=4)

    assert windows.of("a") == 32
    windows.note_time("a", 0.0, 0.0, waiting=4)
    assert windows.of("a") == 32


def test_it_falls_no_further_than_to_what_may_wait():
    windows: AnswerWindows[str] = AnswerWindows(most=32, fewest=4, first=8)
    for waiting in (6, 1):
        for _ in range(20):
            windows.note_time("a", 60.0, 0.1, waiting=waiting)

        assert windows.of("a") == waiting


def test_a_bad_answer_makes_no_window_larger():
    windows: AnswerWindows[str] = AnswerWindows(most=32, fewest=4, first=8)
    for _ in range(20):
        windows.note_time("a", 60.0, 0.1, waiting=2)

    windows.note("a", is_good=False)
    assert windows.of("a") == 2


def test_who_is_not_heard_of_may_begin_with_another_number():
    windows: AnswerWindows[str] = AnswerWindows(most=32, fewest=4, first=8)
    windows.begin("a", 2)
    assert windows.of("a") == 2
    windows.note("a", is_good=True)
    windows.begin("a", 2)
    assert windows.of("a") == 4
