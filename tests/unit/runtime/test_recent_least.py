"""What something takes while nobody waits for it."""

from __future__ import annotations

from vnode.runtime.recent_least import RecentLeast


def test_the_least_of_the_last_minutes_counts():
    least = RecentLeast(60.0)
    assert least.note(0.5, 10.0) == 0.5
    assert least.note(0.1, 20.0) == 0.1
    assert least.note(0.4, 69.0) == 0.1
    assert least.note(0.3, 80.0) == 0.1  # the minute before
    assert least.note(0.4, 140.0) == 0.3


def test_what_was_measured_before_a_pause_is_forgotten():
    least = RecentLeast(60.0)
    least.note(0.1, 0.0)
    assert least.note(0.4, 120.0) == 0.4
