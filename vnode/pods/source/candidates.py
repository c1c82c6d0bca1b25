"""Decides the candidate phase: what to do next about a pod that targets could take. Pure.

Candidates are tried best target first. The next target is tried when one rejects, or when one is
silent: it reports nothing about this candidate, nor about any other, for a short while. A target
that answers its candidates one after the other is busy, not silent, so a burst does not send every
pod everywhere. The first candidate to become reserved wins, even if it was rejected before.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from vnode.api import keys, objects, permissions, scheduled_condition, visible
from vnode.api.errors import ConfigError
from vnode.api.objects import Object
from vnode.pods import preemption

_MADE_ROOM: Final = 12.0
"""Seconds for which a candidate may have room and no place: kube-scheduler backs off for 10 s.
After that it has lost its wake-up (kubernetes/kubernetes#141694), and tries again in five minutes.
"""


_LONGEST: Final = 8192  # characters of what a target says; users are shown 1,024

_OF_QUOTA: Final = re.compile(
    r"(exceeded|failed) quota: |usage per (Container|Pod) is |max limit to request ratio per "
)


class CandidateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How candidates are tried. Times in seconds."""

    parallel: int = 1
    """How many targets are asked at once; more find a place sooner and cost writes everywhere."""
    stagger: float = 2.0
    """After how long without an answer the next target is asked as well."""
    patience: float = 30.0
    """After how long without an answer a candidate no longer keeps its attempt from ending."""
    keep_rejected: int = 3
    """How many rejected candidates stay, for the autoscalers of their targets to see."""

    def check(self) -> None:
        """Raise ConfigError if a value is out of bounds or contradicts another."""
        if self.parallel < 1 or self.keep_rejected < 0:
            raise ConfigError("candidates: parallel must be 1 or more, keepRejected 0 or more")

        if not 0 < self.stagger <= self.patience:
            raise ConfigError("candidates: stagger must be above 0 and not above patience")


class CandidateState(enum.Enum):
    """What a target has reported about a candidate."""

    WAITING = "waiting"
    RESERVED = "reserved"
    PREEMPTING = "preempting"  # others are ended there for its sake
    REJECTED = "rejected"
    FAILED = "failed"  # it could not be created
    LOST = "lost"  # its delegate was deleted: only a new candidate can find a place
    COMMITTED = "committed"  # allowed already: the decision is made, even if not by this process
    HELD = "held"  # committed, as far as known, and its target does not answer: no other may run


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate; `since` is when it was created, by the monotonic clock.

    `has_room`: others were ended for it, and its target says that there is room now.
    """

    state: CandidateState
    since: float
    message: str = ""
    has_room: bool = False


def read(chaperon: Object, since: float) -> Candidate:
    """Return the state of a candidate by its chaperon.

    A reservation is newer than a rejection: the target withdraws it when it rejects again. Without
    a delegate there is neither, whatever was reported before.
    """
    annotations = objects.annotations(chaperon)
    if permissions.is_allowed(chaperon):
        return Candidate(CandidateState.COMMITTED, since)

    if keys.POD_MISSING_SINCE in annotations:
        return Candidate(CandidateState.LOST, since, "the candidate pod was deleted in the target")

    if keys.GANG_REFUSED in annotations:
        why = visible.line(annotations[keys.GANG_REFUSED][:_LONGEST])
        return Candidate(CandidateState.REJECTED, since, why)

    if keys.IS_RESERVED in annotations:
        return Candidate(CandidateState.RESERVED, since)

    reason = scheduled_condition.rejection(objects.status(chaperon))
    if reason is not None:
        is_preempting = preemption.is_preempting(chaperon)
        state = CandidateState.PREEMPTING if is_preempting else CandidateState.REJECTED
        return Candidate(state, since, reason or "unschedulable")

    scheduled = objects.condition(chaperon, "PodScheduled") or {}
    failed = scheduled.get("status") == "False"  # the scheduler, and it tries again
    why = f"{scheduled.get('reason')}: {scheduled.get('message')}" if failed else ""
    return Candidate(CandidateState.WAITING, since, visible.line(why[:_LONGEST]))


def has_node(chaperon: Object) -> bool:
    """Return whether the delegate has a node, and so its target's free resources exclude it.

    One that is reserved has none yet: the target counts it once it is allowed and bound.
    """
    return objects.is_condition_true(chaperon, "PodScheduled")


def is_in_vain(chaperon: Object) -> bool:
    """Return whether a candidate that goes now was in vain: its pod has not run, nor been refused.

    That one was refused has been counted.
    """
    status = objects.status(chaperon)
    has_run = status.get("phase") not in (None, "Pending")
    return not has_run and scheduled_condition.rejection(status) is None


def is_answered(chaperon: Object) -> bool:
    """Return whether the target has said anything of a candidate's pod: its quotas are decided."""
    status = objects.status(chaperon)
    reserved = keys.IS_RESERVED in objects.annotations(chaperon)
    return (
        reserved or bool(status.get("phase")) or scheduled_condition.rejection(status) is not None
    )


def is_accepted(chaperon: Object) -> bool:
    """Return whether a candidate's pod is in the target, or on its way: not refused, nor gone.

    Only a pod that exists has a phase.
    """
    status = objects.status(chaperon)
    if keys.POD_MISSING_SINCE in objects.annotations(chaperon):
        return False

    return bool(status.get("phase")) or scheduled_condition.rejection(status) is None


def quota_refusal(chaperon: Object) -> str:
    """Return why a quota or a limit of the target refused the pod, in its words; "" if none did."""
    message = scheduled_condition.rejection(objects.status(chaperon)) or ""
    return message if not is_accepted(chaperon) and _OF_QUOTA.search(message) else ""


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the proxy to this node: its candidate has a place."""

    node: str


@dataclass(frozen=True, slots=True)
class Create:
    """Try this node next."""

    node: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until a candidate changes, or for that many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the phase: no target has a place now; candidates that stay may find one later."""


Action = Bind | Create | Wait | GiveUp


def decide(
    ranked: Sequence[str],
    candidates: Mapping[str, Candidate],
    answered: Mapping[str, float],
    now: float,
    settings: CandidateSettings,
) -> Action:
    """Return the next step for one pod.

    `ranked` are the nodes that scheduling found feasible, best first; `candidates` those that
    exist, on whichever node; `answered` is when each node's target last answered about any of its
    candidates.
    """
    order = {node: place for place, node in enumerate(ranked)}
    for state in (CandidateState.COMMITTED, CandidateState.RESERVED):
        winners = [node for node, candidate in candidates.items() if candidate.state is state]
        if winners:
            return Bind(min(winners, key=lambda node: (order.get(node, len(order)), node)))

    if any(candidate.state is CandidateState.HELD for candidate in candidates.values()):
        return GiveUp()

    preempting = [
        c.since + (min(_MADE_ROOM, settings.patience) if c.has_room else settings.patience)
        for c in candidates.values()
        if c.state is CandidateState.PREEMPTING
    ]
    if preempting:  # victims in one target are enough
        left = max(preempting) - now
        return Wait(left) if left > 0 else GiveUp()

    waiting = {n: c for n, c in candidates.items() if c.state is CandidateState.WAITING}
    silent_at = {n: _silent_at(n, c, answered, settings) for n, c in waiting.items()}
    untried = [node for node in ranked if node not in candidates]
    answering = sum(1 for moment in silent_at.values() if moment > now)
    if untried and answering < settings.parallel:
        return Create(untried[0])

    given_up_at = {n: c.since + settings.patience for n, c in waiting.items()}
    moments = [m for m in given_up_at.values() if m > now]
    if not moments:
        return GiveUp()

    if untried:
        moments += [moment for moment in silent_at.values() if moment > now]

    return Wait(min(moments) - now)


def _silent_at(
    node: str, candidate: Candidate, answered: Mapping[str, float], settings: CandidateSettings
) -> float:
    """Return when the target counts as silent about this candidate, unless it answers before."""
    last_answer = max(candidate.since, answered.get(node, candidate.since))
    return min(last_answer + settings.stagger, candidate.since + settings.patience)


def surplus(
    ranked: Sequence[str],
    candidates: Mapping[str, Candidate],
    asked: Mapping[str, float],
    settings: CandidateSettings,
) -> list[str]:
    """Return the rejected candidates beyond the limit.

    Those go that were asked longest ago, by the attempts at `asked`, and of one attempt the least
    preferred.
    """
    order = {node: place for place, node in enumerate(ranked)}

    def age(node: str) -> tuple[float, int, str]:
        return -asked.get(node, -math.inf), order.get(node, len(order)), node

    rejected = [
        n for n, candidate in candidates.items() if candidate.state is CandidateState.REJECTED
    ]
    return sorted(rejected, key=age)[settings.keep_rejected :]
