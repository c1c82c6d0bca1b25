"""Decides the stage of each pod, and counts the pods at each stage. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from vnode.api import objects
from vnode.api.objects import Object
from vnode.insight import failing
from vnode.pods.source.candidates import CandidateState

NOWHERE = ""
"""Stands for the virtual node of pods that have no target yet."""

NO_PLACE = "No target fits"
"""The status of pods that every target has rejected."""

_NOT_REJECTED = (
    CandidateState.WAITING,
    CandidateState.PREEMPTING,
    CandidateState.RESERVED,
    CandidateState.COMMITTED,
)


class Stage(Enum):
    """The stages of a proxy pod, in order."""

    PENDING = "pending"
    CANDIDATE = "candidates"
    BOUND = "bound"
    RUNNING = "running"
    FAILING = "failing"
    ENDING = "ending"
    FINISHED = "finished"
    FAILED = "failed"

    @property
    def title(self) -> str:
        """The heading of its column."""
        return self.value.capitalize()

    @property
    def meaning(self) -> str:
        """One line about pods at this stage."""
        return _MEANING[self]


_MEANING = {
    Stage.PENDING: "in the queue: no target has been asked, or every target rejected it",
    Stage.CANDIDATE: "a target has been asked whether it has a place",
    Stage.BOUND: "a target has it, its containers do not run yet",
    Stage.RUNNING: "its containers run",
    Stage.FAILING: "a container of it fails or is not ready, or its target does not answer",
    Stage.ENDING: "it was deleted, and is not gone yet",
    Stage.FINISHED: "it has ended by itself",
    Stage.FAILED: "it has ended, and failed",
}


@dataclass(frozen=True, slots=True)
class StagedPod:
    """A pod with its stage, the virtual node that it is bound to, and those of its candidates.

    `status` is the column STATUS, and `why` a sentence where something is wrong.
    """

    pod: Object
    stage: Stage
    node: str
    status: str
    why: str = ""
    asked: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether no target has a place for it at present."""
        return self.status == NO_PLACE


@dataclass(frozen=True, slots=True)
class Flow:
    """The number of pods at each stage, in total and by virtual node (`NOWHERE` if none)."""

    total: Counter[Stage] = field(default_factory=Counter)
    by_node: dict[str, Counter[Stage]] = field(default_factory=dict)

    def at(self, node: str, stage: Stage) -> int:
        """Return the number of pods of one virtual node at a stage."""
        return self.by_node.get(node, Counter())[stage]


def classify(
    pod: Object, candidates: Mapping[str, CandidateState], away: Collection[str], now: datetime
) -> StagedPod:
    """Return a pod with its stage.

    `candidates` has the states of its candidates by virtual node; `away` are the virtual nodes
    whose targets do not answer.
    """
    node = objects.node_name(pod)
    asked = tuple(sorted(name for name, state in candidates.items() if state in _NOT_REJECTED))
    failure = failing.find(pod, now)
    stage = _stage(pod, is_away=node in away, fails=failure is not None, is_asking=bool(asked))
    if stage is Stage.PENDING and (refusal := _refusal(pod)) is not None:
        return StagedPod(pod, stage, node, NO_PLACE, refusal)

    status, why = failing.status(pod, now, is_away=node in away), ""
    if status == failing.UNREACHABLE:
        why = "the target is not ready: this status may be outdated"
    elif failure and stage in (Stage.FAILING, Stage.FAILED):
        why = failure.text

    return StagedPod(pod, stage, node, status, why, asked if stage is Stage.CANDIDATE else ())


def _stage(pod: Object, *, is_away: bool, fails: bool, is_asking: bool) -> Stage:
    phase = objects.status(pod).get("phase")
    if objects.is_finished(pod):
        return Stage.FAILED if phase == "Failed" else Stage.FINISHED

    if objects.is_terminating(pod):
        return Stage.ENDING

    if not objects.node_name(pod):
        return Stage.CANDIDATE if is_asking else Stage.PENDING

    if is_away or fails:
        return Stage.FAILING

    return Stage.RUNNING if phase == "Running" else Stage.BOUND


def _refusal(pod: Object) -> str | None:
    """Return why no target has a place for a pending pod; None if it was not rejected."""
    scheduled = objects.condition(pod, "PodScheduled") or {}
    if scheduled.get("status") != "False" or objects.spec(pod).get("schedulingGates"):
        return None

    return str(scheduled.get("message") or "")


def count(pods: Iterable[StagedPod]) -> Flow:
    """Count pods by stage.

    A pod with several candidates counts once in total, and once for each of their virtual nodes.
    """
    flow = Flow()
    for staged in pods:
        flow.total[staged.stage] += 1
        for node in staged.asked or (staged.node,):
            flow.by_node.setdefault(node, Counter())[staged.stage] += 1

    return flow
