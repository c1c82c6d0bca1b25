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
        self._number: dict[str, int] = {}  # of each move under way, by UID of the pod that is moved
        self._moves = 0

    def begin(self, moved: str, there: Collection[str]) -> None:
        """Take note of the pods that there are when the move of one of them begins."""
        self._moves += 1
        self._number[moved] = self._moves
        if len(self._first) > 2 * len(there):
            self._first = {uid: first for uid, first in self._first.items() if uid in there}

        for uid in there:
            self._first.setdefault(uid, self._moves)

    def end(self, moved: str) -> None:
        """Forget a move; when none is under way, all pods."""
        del self._number[moved]
        if not self._number:
            self._first.clear()

    def is_new(self, uid: str, moved: str) -> bool:
        """Tell whether a pod came after the move of another one began."""
        return self._first.get(uid, math.inf) > self._number[moved]

    def exclude(self, uid: str) -> None:
        """Take note that a pod can replace no other one: it has replaced one."""
        self._first[uid] = 0
