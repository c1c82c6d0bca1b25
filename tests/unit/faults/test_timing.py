"""What took too long, or was given up, is a violation."""

from __future__ import annotations

from tests.faults import timing
from tests.faults.timing import LIMIT, Measure


def test_what_is_slow_or_does_not_happen_is_a_violation() -> None:
    quick, slow = Measure("a pod", LIMIT - 1), Measure("a pod", LIMIT + 1)
    never = Measure("a pod", 5.0, done=False)
    assert list(timing.violations([quick])) == []
    assert [violation.what for violation in timing.violations([quick, slow, never])] == [
        "a pod: 16.0 s, at most 15 s",
        "a pod: 5.0 s, and not yet, at most 15 s",
    ]


def test_a_scheduler_that_may_watch_nothing_yet_is_not_timed() -> None:
    outages = {"c2": 100.0}
    assert not timing.can_start("c2", outages, 100.0 + timing.RECONNECTING)
    assert timing.can_start("c2", outages, 100.1 + timing.RECONNECTING)
    assert timing.can_start("c3", outages, 100.1)
