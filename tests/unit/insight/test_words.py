"""Ages of what is not written as it should be."""

from datetime import UTC, datetime

from vnode.insight import words


def test_a_time_without_a_zone_is_taken_for_utc() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert words.age("2026-01-02T03:04:00", now) == "5s"
