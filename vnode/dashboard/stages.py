"""How far a pod has come, and how many have come how far. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from vnode.api import objects
from vnode.api.objects import Object
from vnode.pods.candidates import State
from vnode.pods.feedback import FINISHED

NOWHERE = ""
"""The place of pods that have no target yet."""

_ASKING = (State.WAITING, State.RESERVED, State.COMMITTED)


class Stage(Enum):
    """The stations of a proxy pod, in their order."""

    PENDING = "pending"
    CANDIDATE = "candidates"
    BOUND = "bound"
    RUNNING = "running"
    ENDING = "ending"
    FINISHED = "finished"

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
    Stage.ENDING: "it was deleted, and is not gone yet",
    Stage.FINISHED: "it has ended by itself",
}


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod with its stage, the virtual node that has it, and those that were asked for a place."""

    pod: Object
    stage: Stage
    node: str
    asked: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """No target has a place for it at present."""
        said = objects.condition(self.pod, "PodScheduled") or {}
        return (
            self.stage is Stage.PENDING
            and said.get("status") == "False"
            and not objects.spec(self.pod).get("schedulingGates")
        )


@dataclass(frozen=True, slots=True)
class Flow:
    """How many pods are at which stage, over all and by virtual node (`NOWHERE` if none)."""

    total: Counter[Stage] = field(default_factory=Counter)
    by_node: dict[str, Counter[Stage]] = field(default_factory=dict)

    def at(self, node: str, stage: Stage) -> int:
        """How many of one virtual node."""
        return self.by_node.get(node, Counter())[stage]


def place(pod: Object, candidates: Mapping[str, State]) -> Placed:
    """Where a pod stands; `candidates` is what each virtual node that was asked has said."""
    node = str(objects.spec(pod).get("nodeName") or "")
    phase = objects.status(pod).get("phase")
    asked = tuple(sorted(name for name, said in candidates.items() if said in _ASKING))
    if phase in FINISHED:
        stage = Stage.FINISHED
    elif objects.is_terminating(pod):
        stage = Stage.ENDING
    elif node:
        stage = Stage.RUNNING if phase == "Running" else Stage.BOUND
    else:
        stage = Stage.CANDIDATE if asked else Stage.PENDING

    return Placed(pod, stage, node, asked if stage is Stage.CANDIDATE else ())


def count(pods: Iterable[Placed]) -> Flow:
    """The flow. A pod that asks several targets counts once over all, and once for each of them."""
    flow = Flow()
    for one in pods:
        flow.total[one.stage] += 1
        for node in one.asked or (one.node,):
            flow.by_node.setdefault(node, Counter())[one.stage] += 1

    return flow
