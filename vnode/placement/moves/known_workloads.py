"""Holds the workloads whose pods may have to be moved. Pure."""

from __future__ import annotations

from collections.abc import Collection

from vnode.placement.moves.workload_moves import WorkloadMoves
from vnode.planning.workload_key import PlannedWorkload


class KnownWorkloads:
    """What is known of them, by key and by workload."""

    def __init__(self) -> None:
        self._moves: dict[PlannedWorkload, WorkloadMoves] = {}
        # Keys by workload, several if policies divide its pods in several ways; none empty.
        self._keys: dict[str, dict[PlannedWorkload, None]] = {}

    def get(self, key: PlannedWorkload) -> WorkloadMoves | None:
        """Return what is known of a workload; None if it has no pods to move."""
        return self._moves.get(key)

    def all(self) -> tuple[WorkloadMoves, ...]:
        """Return what is known of all."""
        return tuple(self._moves.values())

    def keys_of(self, workload: str) -> Collection[PlannedWorkload]:
        """Return the keys of a workload."""
        return tuple(self._keys.get(workload, ()))

    def add(self, moves: WorkloadMoves) -> None:
        """Add a workload."""
        self._moves[moves.key] = moves
        self._keys.setdefault(moves.key.workload, {})[moves.key] = None

    def pop(self, key: PlannedWorkload) -> WorkloadMoves | None:
        """Forget a workload; return what was known of it."""
        moves = self._moves.pop(key, None)
        if moves is not None:
            keys = self._keys[key.workload]
            del keys[key]
            if not keys:
                del self._keys[key.workload]

        return moves
