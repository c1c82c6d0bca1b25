"""A gang of twice the size costs twice as much: nobody goes through all members for each."""

from __future__ import annotations

import pytest

from tests.simulation import gang_work

SIZE = 20


@pytest.mark.parametrize(
    ("minimum", "room"), [(1.0, 1.0), (0.05, 1.0), (1.0, 0.9)], ids=["whole", "late", "no-room"]
)
def test_the_work_for_a_gang_grows_as_its_number_of_pods(minimum: float, room: float) -> None:
    """`late`: one pod starts, and all others follow it; `no-room`: some find no place."""
    small, large = (
        gang_work.work(size, int(size * minimum), room=int(size * room), seconds=6)
        for size in (SIZE, 2 * SIZE)
    )
    for name, looks in large.items():
        assert looks <= 2.5 * max(small[name], SIZE), name
