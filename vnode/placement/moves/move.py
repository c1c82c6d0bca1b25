"""Says what a move is: one pod that was evicted for another one to run elsewhere. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from vnode.api.owners import OwnerKey
from vnode.planning.move_reasons import MoveReason


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
    reason: MoveReason
    owner: OwnerKey | None
    """The pod's controller."""
    better: frozenset[str] = frozenset()
    """Clusters that would be better still."""
    fits: int = 0
    """So many such pods the target seemed to have room for."""
    why: str = ""
    """For people."""
    alone: float | None = None
    """Since when it is gone without a new pod, None while it is not."""
    replacement: str = ""
    replaced_at: float = 0.0
    """Since when there is the new pod."""
    is_outdated: bool = False
    """The policy has changed since: the new pod may have been planned for another cluster."""
