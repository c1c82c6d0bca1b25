"""What the candidate phase of one pod knows beyond what the stores say, and how it may end."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vnode.scheduling.status import Status


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
    barred: frozenset[str] = frozenset()  # nodes that this pod must not be on, whatever they say
    asked: Mapping[str, float] = field(default_factory=dict)  # node -> when, by earlier phases
    generation: int | None = None  # of the cache, when the nodes were ranked
    moved: asyncio.Event = field(default_factory=asyncio.Event)  # set to look again
    created: dict[str, float] = field(default_factory=dict)  # node -> when, by this phase
    creating: dict[str, asyncio.Task[None]] = field(default_factory=dict)  # those under way
    deleting: set[asyncio.Task[None]] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)  # node -> why it could not be created
    refused: dict[str, Status] = field(default_factory=dict)  # node -> why not there any more
    rejected: set[str] = field(default_factory=set)  # nodes whose no was counted
    annotations: dict[str, str] = field(default_factory=dict)  # node -> what its user must know
    shaky: bool = False  # one of those failures may not happen again
    winner: str = ""  # the node to which the pod is being bound

    def lost(self, node: str) -> None:
        """Its candidate there is gone, and not by us: worth another try, after a back-off."""
        if node in self.created:
            self.failed[node] = "the candidate was deleted in the target"
            self.shaky = True

        self.moved.set()


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """A phase that comes to nothing; `reasons` says why, by node."""

    outcome: Outcome
    reasons: dict[str, str] = field(default_factory=dict)
