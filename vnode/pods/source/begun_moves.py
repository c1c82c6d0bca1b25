"""Remembers which pods this leader has deleted to run elsewhere, and which others came since.

Who came later may be a replacement. To tell, the pods of owners that are moved have numbers in the
order in which they came: a list of all others, for each of thousands that are moved at once, would
fill the memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from vnode.api import objects
from vnode.api.objects import Object
from vnode.api.owners import OwnerKey, owner_key


@dataclass(frozen=True, slots=True)
class BegunMove:
    """A pod that was deleted, or is about to be."""

    why: str
    since: float  # wall clock
    grace: float
    """Seconds for which it may wait, by its policy."""
    owner: OwnerKey | None
    before: int
    """The number of the pod that had come last."""


class BegunMoves:
    """Kept up to date by `on_pod`, from before the first move."""

    def __init__(self) -> None:
        self._moves: dict[str, BegunMove] = {}  # by UID; goes with the pod
        self._owners = Counter[OwnerKey | None]()  # of those; no zeros
        # By UID, pods that came while another one of their owner was moved; all others came before.
        self._numbers: dict[str, int] = {}  # goes with the pod
        self._last = 0  # number that was given

    def begin(self, pod: Object, why: str, since: float, grace: float) -> None:
        """Note that a pod is about to be deleted."""
        self.forget(pod)
        move = BegunMove(why, since, grace, owner_key(pod), self._last)
        self._moves[objects.uid(pod)] = move
        self._owners[move.owner] += 1

    def forget(self, pod: Object) -> None:
        """Note that a pod was not deleted, or is gone."""
        if (move := self._moves.pop(objects.uid(pod), None)) is not None:
            self._owners[move.owner] -= 1
            if not self._owners[move.owner]:
                del self._owners[move.owner]

    def of(self, pod: Object) -> BegunMove | None:
        """Return what was begun with a pod."""
        return self._moves.get(objects.uid(pod))

    def number(self, pod: Object) -> int:
        """Return the number of a pod: a larger one than those have that came before it."""
        return self._numbers.get(objects.uid(pod), 0)

    def on_pod(self, old: Object | None, new: Object | None) -> None:
        """Take a pod that has come, changed or gone."""
        if old is None and new is not None and owner_key(new) in self._owners:
            self._last += 1
            self._numbers[objects.uid(new)] = self._last
        elif old is not None and new is None:
            self._numbers.pop(objects.uid(old), None)
            self.forget(old)
