"""How many of something may be unanswered at once."""

from __future__ import annotations

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
