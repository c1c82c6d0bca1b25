"""A loop is stuck if it stands still, or is nearly always late."""

from __future__ import annotations

from vnode.runtime.stall_guard import StallGuard

TIMEOUT = 60.0
PERIOD = TIMEOUT / 60


class WatchedLoop:
    """A guard, and the time that it sees."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.guard = StallGuard(TIMEOUT, lambda: self.now)

    def pass_by(self, seconds: float, callback: float = 0.0) -> bool:
        """Have callbacks that take so long follow each other; tell whether it always ran."""
        end, ran = self.now + seconds, True
        while self.now < end:
            self.now += max(PERIOD, callback)
            ran = ran and self.guard.runs()
            self.guard.beat()

        return ran


def test_a_loop_that_beats_in_time_runs() -> None:
    assert WatchedLoop().pass_by(3600)


def test_one_stall_that_is_shorter_than_the_timeout_is_forgiven() -> None:
    loop = WatchedLoop()
    assert loop.pass_by(59, callback=59)
    assert loop.pass_by(600)


def test_one_that_stands_still_does_not_run_until_it_beats() -> None:
    loop = WatchedLoop()
    loop.now += TIMEOUT + PERIOD
    assert not loop.guard.runs()
    loop.guard.beat()
    assert loop.guard.runs()


def test_stalls_that_are_each_short_add_up() -> None:
    loop = WatchedLoop()
    assert loop.pass_by(4 * TIMEOUT, callback=10)
    assert not loop.pass_by(TIMEOUT, callback=10)


def test_a_loop_that_is_late_by_seconds_is_slow_and_not_stuck() -> None:
    assert WatchedLoop().pass_by(3600, callback=4)


def test_what_was_long_ago_does_not_count() -> None:
    loop = WatchedLoop()
    for _ in range(20):
        assert loop.pass_by(2 * TIMEOUT, callback=30)
        assert loop.pass_by(4 * TIMEOUT)


def test_other_work_begins_with_no_delays() -> None:
    loop = WatchedLoop()
    assert not loop.pass_by(6 * TIMEOUT, callback=30)
    loop.guard.restart()
    assert loop.guard.runs()
    assert loop.pass_by(3 * TIMEOUT, callback=30)


def test_it_tells_whether_the_loop_has_run_within_a_time() -> None:
    loop = WatchedLoop()
    loop.now += 100
    assert loop.guard.ran_within(101)
    assert not loop.guard.ran_within(99)
    loop.guard.beat()
    assert loop.guard.ran_within(1)
