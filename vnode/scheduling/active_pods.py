"""Holds the pods that may be tried now, and says which is next: namespaces take turns.

Within a namespace the QueueSort plugin orders them. Among namespaces, the one whose next pod has
the highest priority comes first, then the one whose pods have taken the least time of scheduling
cycles. A namespace that has taken much more time than others loses what its priorities give it,
until the others have caught up: whoever may use a PriorityClass could stop everybody else.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any, Final

from vnode.api.turns import Turns
from vnode.scheduling.queued_pod import QueuedPod

ALLOWANCE: Final = 0.1
"""Seconds of cycles, some hundred pods, for which priorities count before others have a turn."""

LEAST_COST: Final = 0.0001
"""Seconds that a turn costs at least: of a clock that stands still, each costs the same."""

SortKey = Callable[[QueuedPod], tuple[Any, ...]]

_Entry = tuple[tuple[Any, ...], int, int, QueuedPod]
"""Sort key, number, and generation as of which the pod is active."""


class ActivePods:
    """Exactly the active pods, and stale entries of pods that have moved on."""

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self._heaps: dict[str, list[_Entry]] = {}  # by namespace, best first; none empty
        self._order = itertools.count()
        self._turns: Turns[str] = Turns(ALLOWANCE)

    def push(self, queued: QueuedPod) -> None:
        """Add a pod, as of its present generation."""
        heap = self._heaps.setdefault(queued.namespace, [])
        entry = (self._sort_key(queued), next(self._order), queued.generation, queued)
        heapq.heappush(heap, entry)
        if heap[0] is entry:
            self._turns.wait(queued.namespace, -queued.priority)

    def pop(self) -> QueuedPod | None:
        """Remove and return the next pod."""
        while (namespace := self._turns.next()) is not None:
            heap = self._heaps[namespace]
            _, _, generation, queued = heapq.heappop(heap)
            self._settle(namespace, heap)
            if queued.generation == generation:
                return queued

        return None

    def pay(self, namespace: str, seconds: float) -> None:
        """Note how long the cycle of a pod of that namespace has taken."""
        self._turns.pay(namespace, max(seconds, LEAST_COST))

    def _settle(self, namespace: str, heap: list[_Entry]) -> None:
        """Have a namespace wait for a turn as long as it has pods, ranked by the first."""
        while heap:
            _, _, generation, queued = heap[0]
            if queued.generation == generation:
                self._turns.wait(namespace, -queued.priority)
                return

            heapq.heappop(heap)

        del self._heaps[namespace]
        self._turns.leave(namespace)
