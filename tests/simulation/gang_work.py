"""Counts what a gang costs by its number of pods: at how many members the agent looks, for all.

Whoever goes through all members for each member shows at once, whatever the machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

from tests.simulation.gang_world import GangJob, GangWorld, run
from vnode.gangs.members import GangMembers

_ON_A_NODE: Final = 50


def world(count: int, minimum: int, *, room: int) -> GangWorld:
    """Return a world with one gang, and a target with room for so many pods."""
    nodes = (_ON_A_NODE,) * (room // _ON_A_NODE) + (room % _ON_A_NODE,)
    return GangWorld({"c2": nodes}, [GangJob("a", minimum, count)], 1, 0.005)


def work(count: int, minimum: int, *, room: int, seconds: float) -> Counter[str]:
    """Return at how many members each function looks, for a gang of so many pods."""
    made = world(count, minimum, room=room)
    with _counted() as looks:
        run(made, seconds)

    assert made.watcher.wrong == []
    assert made.running("a") == (count if room >= count else 0)
    return looks


class CountedMembers(dict[str, Any]):
    """Members by UID; counts those that are gone through, by who does."""

    looks: Counter[str]

    def __iter__(self) -> Iterator[str]:
        return self._counted(super().__iter__())

    def values(self) -> Any:
        """Yield the members."""
        return self._counted(iter(super().values()))

    def items(self) -> Any:
        """Yield them with their UIDs."""
        return self._counted(iter(super().items()))

    def _counted(self, found: Iterator[Any]) -> Iterator[Any]:
        code = sys._getframe(1).f_code
        name = f"{code.co_filename.rpartition('/')[2]} {code.co_name}"
        for each in found:
            self.looks[name] += 1
            yield each


@contextmanager
def _counted() -> Iterator[Counter[str]]:
    looks: Counter[str] = Counter()
    original = GangMembers.__init__

    def init(self: GangMembers) -> None:
        original(self)
        for name in ("_all", "_waiting", "_bound"):
            counted = CountedMembers()
            counted.looks = looks
            setattr(self, name, counted)

    with patch.object(GangMembers, "__init__", init):
        yield looks
