"""Defines what is said of a pod in one line: its state, and what to do about it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from vnode.insight import failing
from vnode.insight.failing import FailureKind


class PodState(Enum):
    """The state of a pod; where `is_good`, nothing needs to be done."""

    RUNNING = "Running"
    FINISHED = "Finished"
    STARTING = "Starting"
    WAITING = "WaitingForTarget"
    ENDING = "Ending"
    NOT_ELECTED = "NotElected"
    GATED = "Gated"
    NO_TARGET = "NoTarget"
    NO_AGENT = "NoAgent"
    UNSCHEDULABLE = "Unschedulable"
    NOT_STARTING = "NotStarting"
    REFUSED = "UpdateRefused"
    CRASHING = "Crashing"
    NOT_READY = failing.NOT_READY
    FAILED = "Failed"
    UNREACHABLE = failing.UNREACHABLE
    LOST = "TargetGone"
    STUCK_ENDING = "StuckTerminating"

    @property
    def is_good(self) -> bool:
        """Whether all is well, or will be without anybody's doing."""
        return self in (
            PodState.RUNNING,
            PodState.FINISHED,
            PodState.STARTING,
            PodState.WAITING,
            PodState.ENDING,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state, one line about it, and the cures, step by step; none if all is well."""

    state: PodState
    text: str
    cures: tuple[str, ...] = ()


def state_of(kind: FailureKind) -> PodState:
    """Return the state of a pod that fails in that way."""
    match kind:
        case FailureKind.CRASH:
            return PodState.CRASHING
        case FailureKind.NOT_READY | FailureKind.NODE:
            return PodState.NOT_READY
        case FailureKind.FAILED:
            return PodState.FAILED
        case _:
            return PodState.NOT_STARTING
