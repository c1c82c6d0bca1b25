"""Keeps account of the moves of one workload until each is over. Pure.

A move begins when a pod is evicted. It is over when a pod that its owner has made since is ready,
or when the owner makes none: then the workload lacks none. A pod that was moved to a cluster and
did not become ready there was moved in vain: what is known of the room there was wrong, so nothing
is moved there for a while, each time for longer. Only a pod of the same template can show that.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api.clock import TICK
from vnode.scheduling.placement.moving import STARTING, MoveReason, Replica
from vnode.scheduling.promises import PROMISE_SECONDS

OWNER: Final = 60.0
"""Seconds after the end of a pod in which its owner makes another one, if it is to."""
BACKOFF: Final = 600.0
"""Seconds for which nothing is moved to where a move was in vain; doubling."""
BACKOFF_LIMIT: Final = 86400.0
_REPORTED: Final = PROMISE_SECONDS + 1  # after that a new pod is no longer counted twice


class MoveOutcome(enum.Enum):
    """How a move ended."""

    ARRIVED = "arrived"
    """The pod that replaces the evicted one is ready where it was moved to."""
    ELSEWHERE = "elsewhere"
    """It is ready in another cluster."""
    LATE = "late"
    """It is not ready after `STARTING`."""
    UNREPLACED = "unreplaced"
    """The owner has made no other pod."""


@dataclass(slots=True)
class Move:
    """One pod that was evicted. Moments are of the monotonic clock."""

    uid: str
    key: str
    target: str
    known: frozenset[str]
    """UIDs of the pods that there were then: none of these replaces it."""
    reason: MoveReason
    owner: str
    """UID of the pod's controller."""
    alone: float | None = None
    """Since when it is gone without a new pod, None while it is not."""
    replacement: str = ""
    replaced_at: float = 0.0
    """Since when there is the new pod."""


class MovesUnderWay:
    """The moves of one workload, oldest first."""

    def __init__(self) -> None:
        self.moves: list[Move] = []
        self._landed: dict[str, float] = {}  # node -> when a pod that was moved there became ready
        self._backoffs: dict[str, tuple[float, float]] = {}  # node -> until when, and for how long

    def __len__(self) -> int:
        return len(self.moves)

    def begin(self, move: Move) -> None:
        """Add a move: its pod is being evicted."""
        self.moves.append(move)

    def withdraw(self, move: Move) -> None:
        """Take a move back: its pod was not evicted after all."""
        self.moves.remove(move)

    def evicted(self) -> frozenset[str]:
        """Return the UIDs of the pods that were evicted, which count no more."""
        return frozenset(move.uid for move in self.moves)

    def missing(self) -> Counter[str]:
        """Return node -> moves to it without a new pod."""
        return Counter(move.target for move in self.moves if not move.replacement)

    def in_backoff(self, now: float) -> frozenset[str]:
        """Return the nodes to which moves were in vain lately."""
        return frozenset(node for node, (until, _) in self._backoffs.items() if until - now >= TICK)

    def targets(self, now: float) -> frozenset[str]:
        """Return the nodes that pods are moved to now, or were a moment ago."""
        recent = (node for node, at in self._landed.items() if now - at < _REPORTED + TICK)
        return frozenset((*recent, *(move.target for move in self.moves)))

    def settle(
        self, replicas: Iterable[Replica], is_there: Callable[[Move], bool], now: float
    ) -> list[tuple[Move, MoveOutcome]]:
        """Find the pods that replace the evicted ones; end and return the moves that are over.

        `is_there` tells whether an evicted pod still exists.
        """
        present = {r.uid: r for r in sorted(replicas, key=lambda r: (-r.age, r.uid))}
        self._match_replacements(present, now)
        kept, over = [], []
        for move in self.moves:
            replica = present.get(move.replacement)
            if replica is None and not is_there(move):
                move.alone = now if move.alone is None else move.alone
            else:
                move.alone = None

            outcome = self._outcome(move, replica, now)
            if outcome is None:
                kept.append(move)
            else:
                over.append((move, outcome))

        self.moves = kept
        for move in kept:
            move.known |= {ended.replacement for ended, _ in over}

        return over

    def wait(self, now: float) -> float | None:
        """Return in how many seconds to settle again if no pod changes; None if never."""
        ends = [move.alone + OWNER for move in self.moves if move.alone is not None]
        ends += [move.replaced_at + STARTING for move in self.moves if move.replacement]
        ends += [at + _REPORTED for at in self._landed.values() if now - at < _REPORTED - TICK]
        ends += [until for until, _ in self._backoffs.values() if until > now]
        return max(0.0, min(ends) - now) if ends else None

    def _match_replacements(self, present: dict[str, Replica], now: float) -> None:
        """Find a new pod for each move: at best one that is where it was moved to."""
        free = dict(present)
        found: dict[str, str] = {}
        for is_exact in (True, False):
            for move in self.moves:
                if move.uid in found:
                    continue

                for uid, replica in free.items():
                    if uid not in move.known and (replica.node == move.target or not is_exact):
                        found[move.uid] = uid
                        del free[uid]
                        break

        for move in self.moves:
            replacement = found.get(move.uid, "")
            if replacement and not move.replacement:
                move.replaced_at = now

            move.replacement = replacement

    def _outcome(self, move: Move, replica: Replica | None, now: float) -> MoveOutcome | None:
        """Return how a move ended, and learn from it; None while it is under way."""
        if replica is None:
            is_over = move.alone is not None and now - move.alone >= OWNER - TICK
            return MoveOutcome.UNREPLACED if is_over else None

        if replica.ready and replica.bound and replica.node == move.target:
            self._backoffs.pop(move.target, None)
            self._landed[move.target] = now
            return MoveOutcome.ARRIVED

        if not replica.ready and now - move.replaced_at < STARTING - TICK:
            return None

        # A pod of another ReplicaSet, after a rollout or of a Deployment that was made anew, tells
        # nothing of the room for this one.
        if replica.owner == move.owner:
            self._back_off(move.target, now)

        return MoveOutcome.ELSEWHERE if replica.ready else MoveOutcome.LATE

    def _back_off(self, node: str, now: float) -> None:
        _, seconds = self._backoffs.get(node, (0.0, BACKOFF / 2))
        seconds = min(2 * seconds, BACKOFF_LIMIT)
        self._backoffs[node] = now + seconds, seconds
