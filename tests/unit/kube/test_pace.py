"""What a server refuses sets its pace: half at once, later one more, and what failed rarely."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.kube.pace import MOST, Pace

RETRY = 1.0  # seconds that a server asks for


def paced(*, granted: int, rounds: int, pace: Pace | None = None) -> tuple[Pace, float, int, int]:
    """Send rounds of as many requests as may be sent, each a centisecond, to a server with seats.

    Return the pace, the time then, and how many requests were answered and refused.
    """
    pace, now, answered, refused = pace or Pace(), 0.0, 0, 0
    for _ in range(rounds):
        now = max(now + 0.01, pace.until)
        count = 0
        while pace.may_send(now, count):
            count += 1

        era = pace.era
        for under_way in range(count, 0, -1):  # the refusals come first, and the rest answers
            if under_way > granted:
                pace.refused(now, era, under_way, RETRY)
                refused += 1
            else:
                answered += 1

        for _ in range(min(count, granted)):
            pace.answered(now, era, count)

    return pace, now, answered, refused


def test_a_server_that_refuses_nothing_gets_all_at_once() -> None:
    pace, _now, answered, refused = paced(granted=MOST, rounds=10)
    assert pace.is_free
    assert (answered, refused) == (10 * MOST, 0)


def test_requests_refused_together_halve_once_and_wait_as_long_as_the_last_asks_for() -> None:
    pace = Pace()
    for number in range(20):
        pace.refused(5.0 + number / 100, 0, 40 - number, RETRY)

    assert pace.limit == 20
    assert not pace.may_send(6.18, 0)
    assert pace.may_send(6.2, 19)
    assert not pace.may_send(6.2, 20)


def test_half_of_what_was_under_way_is_sent_not_half_of_what_might_have_been() -> None:
    pace = Pace()
    pace.refused(0.0, 0, 6, RETRY)
    assert pace.limit == 3


def test_one_more_is_sent_after_a_round_of_answers() -> None:
    pace = Pace()
    pace.refused(0.0, 0, 20, RETRY)
    for _ in range(10):
        pace.answered(2.0, 1, 10)

    assert pace.limit == 11
    for _ in range(10):
        pace.answered(2.0, 1, 11)

    assert pace.limit == 11


def test_answers_that_show_nothing_leave_the_pace_as_it_is() -> None:
    pace = Pace()
    pace.refused(0.0, 0, 20, RETRY)
    for _ in range(100):
        pace.answered(2.0, 0, 10)  # sent before the refusal
        pace.answered(2.0, 1, 9)  # while fewer than may be were under way

    assert pace.limit == 10


def test_a_number_that_was_refused_is_tried_again_after_ten_pauses() -> None:
    pace = Pace()
    pace.refused(0.0, 0, 4, RETRY)
    for _ in range(50):
        pace.answered(9.9, 1, pace.limit)

    assert pace.limit == 3
    for _ in range(3):
        pace.answered(10.0, 1, 3)

    assert pace.limit == 4


def test_a_server_that_has_recovered_gets_all_at_once_again() -> None:
    slowed, *_ = paced(granted=1, rounds=20)
    assert slowed.limit == 1
    now = slowed.until + 20
    while not slowed.is_free:
        slowed.answered(now, slowed.era, slowed.limit)

    assert slowed.may_send(now, MOST - 1)


def test_a_pause_without_a_refusal_changes_no_number() -> None:
    pace = Pace()
    pace.wait(1.0, 3.0)
    assert pace.is_free
    assert not pace.may_send(3.9, 0)
    assert pace.may_send(4.0, MOST - 1)


@given(st.integers(1, MOST - 1))
def test_throughput_converges_to_what_is_granted_and_few_are_refused(granted: int) -> None:
    pace, *_ = paced(granted=granted, rounds=60)
    _pace, now, answered, refused = paced(granted=granted, rounds=2500, pace=pace)
    possible = now * 100 * granted
    assert answered > 0.6 * possible
    assert refused < 0.03 * (answered + refused)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["answered", "refused", "pause"]),
            st.integers(-1, 1),
            st.integers(1, 2 * MOST),
            st.floats(0.0, 100.0),
        )
    )
)
def test_whatever_happens_something_may_be_sent_once_the_pause_is_over(
    events: list[tuple[str, int, int, float]],
) -> None:
    pace, now, longest = Pace(), 0.0, 0.0
    for what, older, under_way, seconds in events:
        now += seconds / 10
        era = pace.era + older
        if what == "answered":
            pace.answered(now, era, under_way)
        elif what == "refused":
            pace.refused(now, era, under_way, seconds)
            longest = max(longest, now + seconds)
        else:
            pace.wait(now, seconds)
            longest = max(longest, now + seconds)

        assert 1 <= pace.limit <= MOST
        assert pace.until <= longest
        assert pace.may_send(max(now, pace.until), 0)
