"""Counts the places that moved pods take, of one workload and of all together. Pure.

What reports say is free may not be without the pods that are on their way there, or came a moment
ago, whoever moved them. There may be thousands of workloads with moves, and each is looked at again
and again: so what all of them take is counted as it changes.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from vnode.api.durations import TICK
from vnode.scheduling.promises import PROMISE_SECONDS, REPORT_SECONDS

REPORTED: Final = PROMISE_SECONDS + 1
"""Seconds after which a new pod is no longer counted twice."""


class TakenPlaces:
    """The places that moves take, by node; what one workload takes counts in `all_` as well."""

    def __init__(self, all_: TakenPlaces | None = None) -> None:
        self._all = all_
        self._moving: Counter[str] = Counter()  # moves under way; no zeroes
        # Nodes, and when a pod that was moved there became ready; of a moment ago.
        self._landed: list[tuple[str, float]] = []

    def begin(self, node: str) -> None:
        """Count a pod that is moved to a node."""
        self._moving[node] += 1
        if self._all is not None:
            self._all.begin(node)

    def end(self, node: str) -> None:
        """Count it no longer."""
        self._moving[node] -= 1
        if not self._moving[node]:
            del self._moving[node]

        if self._all is not None:
            self._all.end(node)

    def land(self, node: str, now: float) -> None:
        """Count for a moment a pod that became ready where it was moved to."""
        self._landed.append((node, now))
        if self._all is not None:
            self._all.land(node, now)

    def tidy(self, now: float) -> None:
        """Forget what landed longer than a moment ago."""
        for landed in [each for each in self._landed if now - each[1] >= REPORTED + TICK]:
            self._drop(landed)

    def leave(self) -> None:
        """Count nothing any more."""
        for node in tuple(self._moving.elements()):
            self.end(node)

        for landed in tuple(self._landed):
            self._drop(landed)

    def taken(self, now: float) -> Counter[str]:
        """Return node -> places for moved pods that reports of what is free may not show yet."""
        found = Counter(self._moving)
        found.update(node for node, at in self._landed if now - at < REPORT_SECONDS - TICK)
        return found

    def targets(self, now: float) -> frozenset[str]:
        """Return the nodes that pods are moved to now, or were a moment ago."""
        recent = (node for node, at in self._landed if now - at < REPORTED + TICK)
        return frozenset((*recent, *self._moving))

    def ends(self, now: float) -> list[float]:
        """Return when that changes though no move begins or ends."""
        return [
            at + seconds
            for seconds in (REPORT_SECONDS, REPORTED)
            for _, at in self._landed
            if now - at < seconds - TICK
        ]

    def _drop(self, landed: tuple[str, float]) -> None:
        self._landed.remove(landed)
        if self._all is not None:
            self._all._drop(landed)
