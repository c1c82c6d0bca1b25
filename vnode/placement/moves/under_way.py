"""Keeps account of the moves of one workload until each is over. Pure.

A move begins when a pod is evicted. It is over when a pod that its owner has made since is ready,
or when the owner makes none: then the workload lacks none. A pod that was moved to a cluster and
did not become ready there was moved in vain: what is known of the room there was wrong, so nothing
is moved there for a while, each time for longer, unless the cluster gets more room than it had.
Only a pod of the same template can show that, and none that came to run in a still better cluster,
or that was planned by another policy than the one that it was moved by.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from vnode.api.durations import TICK
from vnode.placement.moves.known_pods import KnownPods
from vnode.placement.moves.move import Move, MoveOutcome
from vnode.placement.moves.taken_places import TakenPlaces
from vnode.planning.failover import OWNER
from vnode.planning.move_policy import STARTING
from vnode.planning.move_state import Replica

BACKOFF: Final = 600.0
"""Seconds for which nothing is moved to where a move was in vain; doubling."""
BACKOFF_LIMIT: Final = 86400.0


@dataclass(slots=True)
class _Backoff:
    """A cluster to which a move was in vain, since when none has succeeded."""

    until: float
    seconds: float
    fits: int
    """So many pods it has seemed to have room for at most, when it had none."""


@dataclass(frozen=True, slots=True)
class MovesNow:
    """What moves of a workload say at one moment; by node where it has names of nodes."""

    count: int
    evicted: frozenset[str]
    """UIDs of the pods that were evicted, which count no more."""
    missing: Counter[str]
    """Moves without a new pod."""
    taken: Counter[str]
    """Places for moved pods that reports of what is free may not show yet."""
    targets: frozenset[str]
    """The nodes that pods are moved to, or were a moment ago."""
    replacements: frozenset[str]
    """UIDs of the new pods."""
    in_backoff: frozenset[str]
    """The nodes to which moves were in vain lately."""


class MovesUnderWay:
    """The moves of one workload, oldest first; the places that they take count in `taken`, too."""

    def __init__(self, taken: TakenPlaces | None = None) -> None:
        self.moves: list[Move] = []
        self._known = KnownPods()
        self._places = TakenPlaces(taken)
        self._backoffs: dict[str, _Backoff] = {}  # by node

    def __len__(self) -> int:
        return len(self.moves)

    def begin(self, move: Move, there: Collection[str]) -> None:
        """Add a move: its pod is being evicted.

        None of the pods that there are replaces it, of which `there` are the UIDs.
        """
        self._known.begin(move.uid, there)
        self.moves.append(move)
        self._places.begin(move.target)

    def withdraw(self, move: Move) -> None:
        """Take a move back: its pod was not evicted after all."""
        self.moves.remove(move)
        self._places.end(move.target)
        self._known.end(move.uid)

    def leave(self) -> None:
        """Take note that the workload is not known any more: its moves take no places."""
        self._places.leave()

    def outdate(self) -> None:
        """Take note that the policy has changed: what becomes of these moves shows nothing."""
        for move in self.moves:
            move.is_outdated = True

    def evicted(self) -> frozenset[str]:
        """Return the UIDs of the pods that were evicted, which count no more."""
        return frozenset(move.uid for move in self.moves)

    def missing(self) -> Counter[str]:
        """Return node -> moves to it without a new pod."""
        return Counter(move.target for move in self.moves if not move.replacement)

    def taken(self, now: float) -> Counter[str]:
        """Return node -> places for moved pods that reports of what is free may not show yet."""
        return self._places.taken(now)

    def backoffs(self, now: float) -> dict[str, float]:
        """Return the nodes to which moves were in vain lately, and until when none goes there."""
        return {n: each.until for n, each in self._backoffs.items() if each.until - now >= TICK}

    def in_backoff(self, now: float) -> frozenset[str]:
        """Return the nodes to which moves were in vain lately."""
        return frozenset(self.backoffs(now))

    def at(self, now: float) -> MovesNow:
        """Return all that counts of them where clusters are looked at."""
        return MovesNow(
            len(self),
            self.evicted(),
            self.missing(),
            self.taken(now),
            self.targets(now),
            frozenset(filter(None, (move.replacement for move in self.moves))),
            self.in_backoff(now),
        )

    def reopen(self, node: str, fits: int, now: float) -> bool:
        """End a back-off if the node has room for more than it ever had in vain; return whether.

        The next one is longer all the same, and what is free now is no news again.
        """
        backoff = self._backoffs.get(node)
        if backoff is None or backoff.until - now < TICK or fits <= backoff.fits:
            return False

        backoff.until, backoff.fits = now, fits
        return True

    def targets(self, now: float) -> frozenset[str]:
        """Return the nodes that pods are moved to now, or were a moment ago."""
        return self._places.targets(now)

    def settle(
        self, replicas: Iterable[Replica], is_there: Callable[[Move], bool], now: float
    ) -> list[tuple[Move, MoveOutcome]]:
        """Find the pods that replace the evicted ones; end and return the moves that are over.

        `is_there` tells whether an evicted pod still exists.
        """
        self._places.tidy(now)
        present = {replica.uid: replica for replica in replicas}
        self._match_replacements(present.values(), now)
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
        for move, _ in over:
            self._known.exclude(move.replacement)
            self._known.end(move.uid)
            self._places.end(move.target)

        return over

    def wait(self, now: float) -> float | None:
        """Return in how many seconds to settle again if no pod changes; None if never."""
        ends = [move.alone + OWNER for move in self.moves if move.alone is not None]
        ends += [move.replaced_at + STARTING for move in self.moves if move.replacement]
        ends += [*self._places.ends(now), *self.backoffs(now).values()]
        return max(0.0, min(ends) - now) if ends else None

    def _match_replacements(self, present: Iterable[Replica], now: float) -> None:
        """Find a new pod for each move: at best one that is where it was moved to."""
        oldest = self.moves[0].uid if self.moves else ""
        new = [r for r in present if oldest and self._known.is_new(r.uid, oldest)]
        new.sort(key=lambda replica: (-replica.age, replica.uid))
        found: dict[str, str] = {}
        for is_exact in (True, False):
            taken = set(found.values())
            free: defaultdict[str, deque[str]] = defaultdict(deque)  # by node, if that matters
            for replica in new:
                if replica.uid not in taken:
                    free[replica.node if is_exact else ""].append(replica.uid)

            for move in self.moves:
                if move.uid in found:
                    continue

                waiting = free[move.target if is_exact else ""]
                while waiting and not self._known.is_new(waiting[0], move.uid):
                    waiting.popleft()  # later moves have found it there, too

                if waiting:
                    found[move.uid] = waiting.popleft()

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
            self._places.land(move.target, now)
            return MoveOutcome.ARRIVED

        if not replica.ready and now - move.replaced_at < STARTING - TICK:
            return None

        # A pod of another ReplicaSet, after a rollout or of a Deployment that was made anew, tells
        # nothing of the room for this one.
        is_alike = replica.owner == move.owner and not move.is_outdated
        if is_alike and not (replica.ready and replica.node in move.better):
            self._back_off(move, now)

        return MoveOutcome.ELSEWHERE if replica.ready else MoveOutcome.LATE

    def _back_off(self, move: Move, now: float) -> None:
        before = self._backoffs.get(move.target) or _Backoff(0.0, BACKOFF / 2, 0)
        seconds = min(2 * before.seconds, BACKOFF_LIMIT)
        self._backoffs[move.target] = _Backoff(now + seconds, seconds, max(before.fits, move.fits))
