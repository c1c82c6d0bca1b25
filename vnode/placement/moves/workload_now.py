"""What a look at a workload with pods to move has shown, as values for whoever decides. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from vnode.placement.moves.under_way import MovesNow
from vnode.planning.move_state import Replica
from vnode.planning.seats import Share


class SettledMoves(NamedTuple):
    """What has become of the moves of a workload since the last look."""

    resumed: bool
    """One is gone on with that another leader has begun."""
    arrived: bool
    """All pods of a workload that was moved as one are there."""
    wait: float | None
    """Seconds after which to look again if no pod changes; None if never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadNow:
    """A workload and its clusters at the moment when they are looked at for one reason."""

    moves: MovesNow
    replicas: tuple[Replica, ...]
    """Its pods but for those that were evicted."""
    unreplaced: int
    """Pods that are awaited, which their owner makes once others are gone."""
    limit: int
    """So many of its pods are moved at once."""
    shares: tuple[Share, ...]
    """Of the clusters that can take its pods, given room."""
    able: frozenset[str]
    """Those that can take its pods, given room; without those where moves were in vain."""
    free: frozenset[str]
    """Those that have room as well, by the filters."""
    fits: Mapping[str, int]
    """Cluster -> such pods for which it has room, by what it says is free."""
