"""Remembers where moves of one workload were in vain, as it was told. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class ClosedCluster:
    """A cluster to which nothing is moved for a while, since a move to it was in vain."""

    until: datetime
    ends: float
    """The same moment of the monotonic clock."""


class MovesInVain:
    """The clusters to which moves were in vain lately, by node."""

    def __init__(self) -> None:
        self._by_node: dict[str, ClosedCluster] = {}

    def until(self) -> dict[str, datetime]:
        """Return until when no pod is moved there."""
        return {node: each.until for node, each in self._by_node.items()}

    def update(
        self, ends: Mapping[str, float], now: float, wall: datetime
    ) -> dict[str, datetime] | None:
        """Take note of when back-offs end, of the monotonic clock; `wall` is the same moment as
        `now`.

        Return those that are news, and until when; None if nothing has changed.
        """
        before = self._by_node
        self._by_node = {
            node: before[node]
            if node in before and before[node].ends == end
            else ClosedCluster(wall + timedelta(seconds=round(end - now)), end)
            for node, end in ends.items()
        }
        if self._by_node == before:
            return None

        return {n: each.until for n, each in self._by_node.items() if each != before.get(n)}
