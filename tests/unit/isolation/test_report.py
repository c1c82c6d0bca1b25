"""When a bystander has noticed an attack."""

from __future__ import annotations

import pytest

from tests.isolation.bystander import PLAIN, STEPS, Times
from tests.isolation.report import AttackTimes, table


def times(**seconds: list[float]) -> Times:
    found = Times()
    for step in (*STEPS, *PLAIN.values()):
        for each in seconds.get(step, [1.0] * 10):
            found.add(step, each)

    return found


@pytest.mark.parametrize(
    ("peace", "attacked", "noticed"),
    [
        ([1.0] * 10, [2.0] * 10, False),
        ([1.0] * 10, [1.0] * 9 + [2.1], True),  # of few pods the slowest counts
        ([0.01] * 10, [0.2] * 10, False),  # nobody notices that
        ([0.01] * 10, [0.3] * 10, True),
        ([1.0] * 990 + [9.0] * 10, [9.0] * 10, False),  # it is as slow in peace, now and then
    ],
)
def test_a_step_that_takes_more_than_twice_as_long_is_noticed(
    peace: list[float], attacked: list[float], noticed: bool
) -> None:
    found = AttackTimes("flood", times(running=attacked), times(running=peace))
    assert found.has_noticed("running") is noticed
    assert found.is_isolated is not noticed
    assert ("**!**" in table([found])) is noticed


@pytest.mark.parametrize(
    ("step", "plain", "noticed"),
    [
        ("running", 3.0, False),
        ("running", 2.9, True),
        ("running", 1.0, True),
        ("gone", 9.0, True),  # another step is no excuse
    ],
)
def test_what_a_plain_pod_waits_as_well_is_not_held_against_vnode(
    step: str, plain: float, noticed: bool
) -> None:
    found = AttackTimes("flood", times(**{"running": [3.0], PLAIN[step]: [plain]}), times())
    assert found.is_slower("running")
    assert found.is_isolated is not noticed
    assert ("3.00 / 1.00 s **!**" if noticed else "3.00 / 1.00 s (!)") in table([found])


def test_a_table_has_a_line_for_each_attack_and_a_column_for_each_step() -> None:
    lines = table([AttackTimes("flood", times(), times())]).splitlines()
    assert lines[0] == (
        "| Attack | Admitted | Running | Logged | Gone "
        "| Plain admitted | Plain running | Plain logged | Plain gone |"
    )
    assert lines[2] == f"| flood |{' 1.00 / 1.00 s |' * 8}"
