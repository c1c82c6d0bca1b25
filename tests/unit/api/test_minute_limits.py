"""A limit by the minute goes on, whatever is changed beside it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vnode.api.token_bucket import MinuteLimits


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 6), st.floats(0, 20)), max_size=80),
    st.integers(1, 3),
)
def test_no_more_is_done_than_the_highest_rate_allows(
    attempts: list[tuple[str, int, float]], burst: int
) -> None:
    """However its rate changes, and whatever other keys do."""
    limits: MinuteLimits[str] = MinuteLimits(burst)
    taken = {"a": 0, "b": 0}
    now = 0.0
    for key, per_minute, pause in attempts:
        now += pause
        taken[key] += limits.take(key, per_minute, now)

    for count in taken.values():
        assert count <= burst + now * 6 / 60 + 1e-6


def test_a_limit_that_was_not_used_lets_one_through_at_once() -> None:
    limits: MinuteLimits[str] = MinuteLimits()
    assert limits.take("a", 1, 0.0)
    assert not limits.take("a", 1, 30.0)
    assert limits.wait("a", 1, 30.0) == 30.0
    assert limits.take("b", 1, 30.0)
    assert limits.take("a", 1, 60.0)
