"""Decides which of two gangs of different sources makes way in a target. Pure.

Each source tries a gang in one target at a time, and gives up what it got there if it does not get
all. Two sources at once may each get a part of what both need. Whoever is lesser is refused then:
the greater one is the same for all who look, so that one always gets through.

A source may say of its gangs whatever it likes, that they are the oldest and never complete, for
example. What it cannot choose are the namespaces in which its chaperons are. So others make way a
few times for the gangs of one, which then come after all others for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from vnode.gangs.marks import GangMark

PATIENCE: Final = 5.0
"""Seconds for which two gangs may each have a part of what they need."""
TIMES: Final = 10
"""How often others make way for gangs of one namespace within `WINDOW`."""
WINDOW: Final = 600.0
"""Seconds, from the first time; in the rest of them these gangs come after all others."""


@dataclass(slots=True)
class GangInTarget:
    """A gang of one source, as far as its candidates are in a target."""

    namespace: str
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


def lesser(
    gangs: Iterable[GangInTarget], last: Collection[str] = ()
) -> tuple[str, list[GangInTarget]]:
    """Return those that make way, of gangs that have all been incomplete for long enough, and the
    namespace of the one for which they do. Those of the namespaces `last` come after all others.
    """
    incomplete = (each for each in gangs if each.is_incomplete)
    ranked = sorted(incomplete, key=lambda each: (each.namespace in last, each.rank))
    if not ranked:
        return "", []

    first, *others = ranked
    return first.namespace, [each for each in others if each.source != first.source]


@dataclass(slots=True)
class _Wins:
    since: float
    times: int = 0


class ConflictTurns:
    """Knows how often others have made way for gangs of namespaces; moments are monotonic."""

    def __init__(self) -> None:
        self._wins: dict[str, _Wins] = {}  # by namespace, of those within their window

    def note(self, namespace: str, now: float) -> None:
        """Note that others make way for a gang of a namespace."""
        self._wins.setdefault(namespace, _Wins(now)).times += 1

    def last(self, now: float) -> frozenset[str]:
        """Return the namespaces whose gangs come after all others."""
        self._wins = {name: w for name, w in self._wins.items() if now - w.since < WINDOW}
        return frozenset(name for name, w in self._wins.items() if w.times >= TIMES)
