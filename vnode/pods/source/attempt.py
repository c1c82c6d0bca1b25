"""State of one candidate phase beyond what the stores have, and the ways in which it may end."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from vnode.pods.preemption import NO_ROUNDS, Rounds
from vnode.pods.source.candidate_forms import KnownForm
from vnode.scheduling.status import Status

Start = Callable[..., asyncio.Task[None]]
"""Starts a task that ends with the phase, as `TaskGroup.create_task` does."""


class Outcome(enum.Enum):
    """How a candidate phase ended."""

    BOUND = enum.auto()
    GONE = enum.auto()  # deleted, or bound by somebody else: nothing is left to do
    UNSCHEDULABLE = enum.auto()


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt to find a target for one pod."""

    key: str
    uid: str
    ranked: Sequence[str]
    started: float  # monotonic
    feasible: frozenset[str] = frozenset()  # nodes that passed all Filter plugins: there is room
    excluded: frozenset[str] = frozenset()  # nodes that this pod must not be on, reserved or not
    asked: Mapping[str, float] = field(default_factory=dict)  # node -> when, by earlier phases
    kept: frozenset[str] = frozenset()  # nodes whose candidates stay, though others are rejected
    preempts: str = ""  # the node whose candidate may preempt others
    rounds: Rounds = NO_ROUNDS  # how often others were preempted for the pod
    generation: int | None = None  # of the cache, when the nodes were ranked
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # set to decide again
    created: dict[str, float] = field(default_factory=dict)  # node -> when, by this phase
    creating: dict[str, asyncio.Task[None]] = field(default_factory=dict)  # those under way
    deleting: set[asyncio.Task[None]] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # node -> why it could not be created
    refused: dict[str, Status] = field(default_factory=dict)  # node -> why plugins now reject it
    rejected: set[str] = field(default_factory=set)  # nodes whose rejection was counted
    notes: dict[str, str] = field(default_factory=dict)  # node -> note for the pod's user
    offers: int = 0  # how often targets have said anew what they would preempt
    retryable: bool = False  # one of those failures may not happen again
    in_gang: bool = False  # it goes on only together with others
    winner: str = ""  # the node to which the pod is being bound
    forms: dict[str, KnownForm] = field(default_factory=dict)  # node -> what would be sent now
    sent: dict[str, KnownForm] = field(default_factory=dict)  # node -> what this phase has sent
    # Node -> UID of an outdated candidate that is being deleted, and since when.
    renewing: dict[str, tuple[str, float]] = field(default_factory=dict)
    remade: int = 0  # outdated candidates that were deleted to be made anew
    unclear: dict[str, str] = field(default_factory=dict)  # node -> why its form is not known

    def lost(self, node: str) -> None:
        """Record that others deleted the candidate on a node: try again after a back-off."""
        if node in self.created:
            self.failed[node] = "the candidate was deleted in the target"
            self.retryable = True

        self.changed.set()


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """A phase that ends without a node; `reasons` has the reason of each node."""

    outcome: Outcome
    reasons: dict[str, str] = field(default_factory=dict)
