"""How far a pod has come, and how many have come how far. Pure."""

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
"""The place of pods that have no target yet."""

NO_PLACE = "No place"
"""The word for pods that every target has refused."""

_ASKING = (CandidateState.WAITING, CandidateState.RESERVED, CandidateState.COMMITTED)


class Stage(Enum):
    """The stations of a proxy pod, in their order."""

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
        """As it stands over a column."""
        return self.value.capitalize()

    @property
    def meaning(self) -> str:
        """What a pod there waits for."""
        return _MEANING[self]


_MEANING = {
    Stage.PENDING: "in the queue: no target has been asked, or every one said no",
    Stage.CANDIDATE: "a target has been asked whether it has a place",
    Stage.BOUND: "a target has it, its containers do not run yet",
    Stage.RUNNING: "its containers run",
    Stage.FAILING: "a container of it fails or is not ready, or its target does not answer",
    Stage.ENDING: "it was deleted, and is not gone yet",
    Stage.FINISHED: "it has ended by itself",
    Stage.FAILED: "it has ended, and failed",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod with its stage, the virtual node that has it, and those that were asked for a place.

    `word` is what the column STATUS says, and `why` a sentence where something is wrong.
    """

    pod: Object
    stage: Stage
    node: str
    word: str
    why: str = ""
    asked: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """No target has a place for it at present."""
        return self.word == NO_PLACE


@dataclass(frozen=True, slots=True)
class Flow:
    """How many pods are at which stage, over all and by virtual node (`NOWHERE` if none)."""

    total: Counter[Stage] = field(default_factory=Counter)
    by_node: dict[str, Counter[Stage]] = field(default_factory=dict)

    def at(self, node: str, stage: Stage) -> int:
        """How many of one virtual node."""
        return self.by_node.get(node, Counter())[stage]


def place(
    pod: Object, candidates: Mapping[str, CandidateState], away: Collection[str], now: datetime
) -> Placed:
    """Where a pod stands.

    `candidates` is what each virtual node that was asked has said; `away` are the virtual nodes
    whose targets do not answer.
    """
    node = objects.node_name(pod)
    asked = tuple(sorted(name for name, said in candidates.items() if said in _ASKING))
    failure = failing.find(pod, now)
    stage = _stage(pod, is_away=node in away, fails=failure is not None, is_asking=bool(asked))
    if stage is Stage.PENDING and (refusal := _refusal(pod)) is not None:
        return Placed(pod, stage, node, NO_PLACE, refusal)

    word, why = failing.status(pod, now, is_away=node in away), ""
    if word == failing.UNREACHABLE:
        why = "the target does not answer: what it last said may be old"
    elif failure and stage in (Stage.FAILING, Stage.FAILED):
        why = failure.text

    return Placed(pod, stage, node, word, why, asked if stage is Stage.CANDIDATE else ())


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
    """Why no target has a place for a pending pod; None if that is not what it waits for."""
    said = objects.condition(pod, "PodScheduled") or {}
    if said.get("status") != "False" or objects.spec(pod).get("schedulingGates"):
        return None

    return str(said.get("message") or "")


def count(pods: Iterable[Placed]) -> Flow:
    """The flow. A pod that asks several targets counts once over all, and once for each of them."""
    flow = Flow()
    for one in pods:
        flow.total[one.stage] += 1
        for node in one.asked or (one.node,):
            flow.by_node.setdefault(node, Counter())[one.stage] += 1

    return flow
