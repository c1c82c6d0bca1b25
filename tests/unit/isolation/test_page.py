"""What was measured replaces the rows of the page that have its names."""

from __future__ import annotations

import pytest

from tests.isolation.attacks import ATTACKS
from tests.isolation.bystander import PLAIN, STEPS, Times
from tests.isolation.page import BEGIN, END, PAGE, updated
from tests.isolation.report import AttackTimes, table


def measured(*names: str) -> str:
    times = Times()
    for step in (*STEPS, *PLAIN.values()):
        times.add(step, 1.0)

    return table(AttackTimes(name, times, times) for name in names)


def page(*rows: str) -> str:
    return "\n".join(("before", BEGIN, "", "| Attack |", "| --- |", *rows, "", END, "after"))


def test_rows_of_what_was_measured_are_new_and_the_others_stay():
    found = updated(page("| a | old |", "| b | old |"), measured("b", "c"))
    rows = [line for line in found.splitlines() if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows] == ["Attack", "---", "a", "b", "c"]
    assert "| a | old |" in found
    assert "| b | old |" not in found
    assert found.startswith("before\n")
    assert found.endswith("\nafter")
    assert updated(found, measured("b", "c")) == found


def test_a_page_without_the_place_is_refused():
    with pytest.raises(ValueError, match="lacks"):
        updated("a page", measured("a"))


def test_the_page_has_a_place_and_only_rows_of_attacks_that_there_are():
    written = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    names = {row.split("|")[1].strip() for row in written.strip().splitlines()[2:]}
    assert names
    assert names <= set(ATTACKS)
    assert BEGIN in updated(PAGE.read_text(), measured(*ATTACKS))
