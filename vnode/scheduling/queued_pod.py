"""A pod in the scheduling queue: its place, and what decides when it is tried."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field
from typing import Final

from vnode.api import objects
from vnode.api.objects import Object

ACTIVE: Final = "active"
BACKOFF: Final = "backoff"
UNSCHEDULABLE: Final = "unschedulable"
HELD: Final = "held"
IN_FLIGHT: Final = "in_flight"


@dataclass(slots=True, eq=False)
class QueuedPod:
    """A pod in the queue; `pod` is its newest version."""

    pod: Object
    uid: str
    priority: int
    added: float
    """When it was first seen, in the clock's monotonic seconds."""
    since: float = 0.0
    """Like `added`, but renewed by each attempt that fails: who has failed goes behind."""
    active_since: float = 0.0
    """Likewise, when it last became active."""
    attempts: int = 0
    """How often it was popped."""
    cycle_seconds: float = 0.0
    """How long the scheduling cycle of its last attempt took."""
    remade: int = 0
    """How many candidates its last attempt made anew."""
    told_at: float = -math.inf
    """When (monotonic) its user was last told why it has no node."""
    asked: dict[str, float] = field(default_factory=dict)
    """Node -> when (monotonic) an attempt that failed last asked its target."""
    # One of the five names above.
    place: str = ACTIVE
    # Counts its moves; a heap entry with another number is stale.
    generation: int = 0
    # When it may be tried again after its last failure.
    ready_at: float = 0.0
    # While in flight: the last event before it was popped, and whether it was changed since.
    seen_event: int = 0
    changed: bool = False
    namespace: str = field(init=False)

    def __post_init__(self) -> None:
        self.namespace = objects.namespace(self.pod)


@dataclass(slots=True)
class Timers:
    """Pods by due time, earliest first; entries of pods that moved on are dropped when met."""

    heap: list[tuple[float, int, int, QueuedPod]] = field(default_factory=list)
    order: itertools.count[int] = field(default_factory=itertools.count)

    def push(self, moment: float, queued: QueuedPod) -> None:
        """Add the pod with its due time, in the clock's monotonic seconds."""
        heapq.heappush(self.heap, (moment, next(self.order), queued.generation, queued))

    def next_moment(self) -> float | None:
        """Return when the first pod is due; None if there is none."""
        while self.heap:
            moment, _, generation, queued = self.heap[0]
            if queued.generation == generation:
                return moment

            heapq.heappop(self.heap)

        return None

    def pop_due(self, now: float, most: int) -> list[QueuedPod]:
        """Remove and return at most so many of the pods that are due, the first ones first."""
        due: list[QueuedPod] = []
        while len(due) < most and (moment := self.next_moment()) is not None and moment <= now:
            due.append(heapq.heappop(self.heap)[3])

        return due


def concerns_scheduling(old: Object, new: Object) -> bool:
    """Return whether a change of the pod gives it another attempt."""
    return (
        objects.spec(old) != objects.spec(new)
        or objects.labels(old) != objects.labels(new)
        or objects.annotations(old) != objects.annotations(new)
    )
