from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vnode.api import durations


@given(st.floats(0, 1e7), st.floats(2, 1000))
def test_what_is_coalesced_is_at_most_a_second_early_and_ends_at_whole_seconds(
    now: float, seconds: float
) -> None:
    delay = durations.coalesced(now, seconds)
    assert seconds - 1 <= delay + 2 * durations.TICK
    assert delay <= seconds + 2 * durations.TICK
    assert (now + delay) % 1 == pytest.approx(0, abs=1e-6) or (now + delay) % 1 > 1 - 1e-6


def test_periods_stay_as_long_as_they_are_once_they_end_together() -> None:
    """A timer may end a little early or late."""
    moments = [5.3]
    for lateness in (0.002, -0.0004, 0.01, 0.0):
        moments.append(moments[-1] + durations.coalesced(moments[-1], 10.0) + lateness)

    assert [round(moment) for moment in moments[1:]] == [15, 25, 35, 45]


def test_what_is_no_longer_than_the_slack_stays_as_it_is() -> None:
    assert durations.coalesced(5.3, 1.0) == 1.0
