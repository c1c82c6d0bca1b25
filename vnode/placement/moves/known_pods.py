"""Tells which pods of a workload came after a move of one began: only these can replace it. Pure.

A workload may have thousands of pods, and hundreds of moves under way. So moves are numbered, and
of each pod is kept which move was the first to find it there: all later ones did, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection


class KnownPods:
    """The pods that were there when moves of one workload began, by UID."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}  # by UID of a pod
        self._moves = 0

    def begin(self, there: Collection[str]) -> int:
        """Take note of the pods that there are when a move begins; return its number."""
        self._moves += 1
        if len(self._first) > 2 * len(there):
            self._first = {uid: first for uid, first in self._first.items() if uid in there}

        for uid in there:
            self._first.setdefault(uid, self._moves)

        return self._moves

    def is_new(self, uid: str, move: int) -> bool:
        """Tell whether a pod came after the move of that number began."""
        return self._first.get(uid, math.inf) > move

    def exclude(self, uid: str) -> None:
        """Take note that a pod can replace no other one: it has replaced one."""
        self._first[uid] = 0

    def clear(self) -> None:
        """Forget all pods, as no move is under way."""
        self._first.clear()
