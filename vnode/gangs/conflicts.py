"""Decides which of two gangs of different sources makes way in a target. Pure.

Each source tries a gang in one target at a time, and gives up what it got there if it does not get
all. Two sources at once may each get a part of what both need. Whoever is lesser is refused then:
the greater one is the same for all who look, so that one always gets through.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from vnode.gangs.marks import GangMark

PATIENCE: Final = 5.0
"""Seconds for which two gangs may each have a part of what they need."""


@dataclass(slots=True)
class GangInTarget:
    """A gang of one source, as far as its candidates are in a target."""

    source: str
    mark: GangMark
    reserved: int = 0
    """How many have a place, or run."""
    allowed: int = 0
    """How many of these may run."""
    open: list[str] = field(default_factory=list)
    """Keys of chaperons that are not allowed to run."""

    @property
    def is_incomplete(self) -> bool:
        """Whether it holds places that it can make no use of."""
        return 0 < self.reserved < self.mark.minimum and not self.allowed

    @property
    def rank(self) -> tuple[int, str, str, str]:
        """What sorts gangs: the greatest first."""
        return -self.mark.priority, self.mark.since, self.source, self.mark.id


def lesser(gangs: Iterable[GangInTarget]) -> list[GangInTarget]:
    """Return those that make way, of gangs that have all been incomplete for long enough."""
    ranked = sorted((each for each in gangs if each.is_incomplete), key=lambda each: each.rank)
    return [each for each in ranked[1:] if each.source != ranked[0].source]
