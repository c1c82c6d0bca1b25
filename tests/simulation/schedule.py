"""One schedule: what users want and do, what breaks, and how slow all is, drawn from a seed. Pure.

A schedule is small, so that thousands of them can be run and one that fails can be read.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from tests.simulation import policies as drawing
from tests.simulation.policies import Cordon, Policies, PolicyChange

SOURCE: Final = "c1"
TARGETS: Final = ("c2", "c3")
CLUSTERS: Final = (SOURCE, *TARGETS)
SPAN: Final = 40.0
"""Seconds within which everything happens; then all heals."""

_MOST_PODS: Final = 6
_ACTIONS: Final = (1, 8)
_FAULTS: Final = (1, 5)
_CALM: Final = 0.25
"""The share of schedules without faults, in which more is promised."""


class Owner(StrEnum):
    """Who makes the pods of a workload, and again when they are gone."""

    USER = "user"  # nobody makes them again
    REPLICA_SET = "replicaset"  # under new names, as soon as one begins to end
    STATEFUL_SET = "statefulset"  # under the same name, when the former one is gone
    JOB = "job"  # until as many as wanted have succeeded; its finalizer holds them until counted


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods that are alike.

    They run for `runs` seconds, 0 for ever, and then fail with the chance `fails`; they stop within
    `farewell` seconds of being asked to. `node` is the target whose virtual node their user has
    chosen without any scheduler, "" for none.
    """

    name: str
    owner: Owner
    at: float
    count: int = 1
    cpu: int = 1
    runs: float = 0.0
    fails: float = 0.0
    grace: int = 30
    farewell: float = 1.0
    node: str = ""

    def __str__(self) -> str:
        times = f"for {self.runs:.1f}s" if self.runs else "for ever"
        where = f" on {self.node}" if self.node else ""
        return (
            f"+{self.at:.1f}s create {self.owner} {self.name} x{self.count} cpu={self.cpu} {times}"
            f" fails={self.fails:g} grace={self.grace} farewell={self.farewell:.1f}s{where}"
        )


class Verb(StrEnum):
    """What users do to pods, and others to delegates and chaperons."""

    DELETE = "delete pod"
    FORCE_DELETE = "force-delete pod"
    EVICT = "evict pod"
    ANNOTATE = "annotate pod"
    LABEL = "label pod"
    REMOVE = "remove workload"
    DELETE_DELEGATE = "delete delegate"
    EVICT_DELEGATE = "evict delegate"
    ANNOTATE_DELEGATE = "annotate delegate"
    DELETE_CHAPERON = "delete chaperon"


@dataclass(frozen=True, slots=True)
class Action:
    """Something done to one of the things that are there then; `number` says to which."""

    verb: Verb
    at: float
    number: int

    def __str__(self) -> str:
        return f"+{self.at:.1f}s {self.verb} #{self.number}"


class Trouble(StrEnum):
    """What goes wrong with an API server, or with the agent of a cluster."""

    ERRORS = "errors"
    LOST_ANSWERS = "lost answers"
    CUT_WATCHES = "cut watches"
    END_WATCHES = "end watches"
    SILENCE_PODS = "silence watches of pods"  # for as long as their clients bear it
    SILENCE_CHAPERONS = "silence watches of chaperons"
    COMPACT = "compact"  # with all watches cut, so that somebody notices
    FREEZE = "freeze"
    STOP = "stop"
    RESTART = "restart agent"  # with empty memory
    NEW_TERM = "new term"  # the Lease was lost, and comes back
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Fault:
    """Trouble with one cluster; `share` is that of the requests that fail."""

    trouble: Trouble
    cluster: str
    at: float
    seconds: float = 0.0
    share: float = 0.0
    status: int = 0

    def __str__(self) -> str:
        more = f" {self.status}" if self.status else ""
        more += f" {self.share:.0%}" if self.share else ""
        more += f" for {self.seconds:.1f}s" if self.seconds else ""
        return f"+{self.at:.1f}s {self.trouble} {self.cluster}{more}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that is decided beforehand; `latency` is the mean seconds of each way of a request.

    `nodes` has the CPUs of each node of each target.
    """

    seed: int
    latency: float
    nodes: dict[str, tuple[int, ...]]
    workloads: tuple[Workload, ...]
    actions: tuple[Action, ...]
    faults: tuple[Fault, ...]
    parallel: int = 1
    policies: Policies = field(default_factory=Policies)

    def lines(self) -> list[str]:
        """Describe it, in the order of its times."""
        parts: list[Workload | Action | Fault | PolicyChange | Cordon]
        parts = [*self.workloads, *self.actions, *self.faults]
        parts += [*self.policies.changes, *self.policies.cordons]
        parts.sort(key=lambda each: each.at)
        head = f"latency {self.latency:g}s, nodes {self.nodes}, {self.parallel} candidates at once"
        return [head, *map(str, parts)]


def draw(seed: int) -> Schedule:
    """Draw the schedule of a seed."""
    dice = random.Random(seed)
    latency = dice.choice((0.001, 0.005, 0.02, 0.1, 0.4))
    moments = _Moments(dice, latency)
    faults = 0 if dice.random() < _CALM else dice.randint(*_FAULTS)
    nodes = {t: tuple(dice.randint(1, 4) for _ in range(dice.randint(1, 2))) for t in TARGETS}
    workloads = tuple(_workloads(dice, moments))
    schedule = Schedule(
        seed,
        latency,
        nodes,
        workloads,
        tuple(_action(dice, moments) for _ in range(dice.randint(*_ACTIONS))),
        tuple(_fault(dice, moments) for _ in range(faults)),
        dice.choice((1, 1, 2)),
    )
    named = [*(workload.name for workload in workloads), "web"]
    policies = drawing.draw(seed, named, TARGETS, moments.draw)
    if any(workload.runs for workload in workloads):
        policies = replace(policies, steady=False)  # pods that end make room for others

    left = () if policies.calm else schedule.faults
    schedule = replace(schedule, policies=policies, faults=left)
    return _overflowing(schedule, policies.tight) if policies.tight else schedule


def _overflowing(schedule: Schedule, tight: str) -> Schedule:
    """Add a Deployment that is larger than one of its targets."""
    more = Workload("web", Owner.REPLICA_SET, 0.0, count=4 + schedule.seed % 3)
    nodes: dict[str, tuple[int, ...]] = dict.fromkeys(schedule.nodes, (4, 4))
    nodes[tight] = (1,)
    return replace(schedule, nodes=nodes, workloads=(*schedule.workloads, more))


class _Moments:
    """When things happen: mostly soon after each other, so that they meet before they are over."""

    def __init__(self, dice: random.Random, latency: float) -> None:
        self._dice = dice
        self._busy = [0.0, *(dice.uniform(0, SPAN) for _ in range(2))]
        self._apart = latency * 10 + 0.1  # about as long as a pod takes to be bound

    def draw(self) -> float:
        """Draw one."""
        if self._dice.random() < 0.3:
            return self._dice.uniform(0, SPAN)

        after = self._dice.expovariate(1 / self._apart)
        return min(self._dice.choice(self._busy) + after, SPAN)


def _workloads(dice: random.Random, moments: _Moments) -> list[Workload]:
    left, found = dice.randint(2, _MOST_PODS), []
    while left > 0:
        owner, count = dice.choice(list(Owner)), min(left, dice.randint(1, 3))
        may_choose = owner is not Owner.STATEFUL_SET  # no finalizer keeps the name of such a pod
        ends = owner is Owner.JOB or (owner is Owner.USER and dice.random() < 0.5)
        found.append(
            Workload(
                f"{owner.value[0]}{len(found)}",
                owner,
                moments.draw() if dice.random() < 0.5 else 0.0,
                count,
                dice.choice((1, 1, 1, 2)),
                dice.choice((0.5, 5.0, 20.0)) if ends else 0.0,
                dice.choice((0.0, 0.3)) if ends else 0.0,
                dice.choice((30, 30, 5, 1)),
                dice.choice((0.1, 2.0, 8.0)),
                dice.choice(TARGETS) if may_choose and dice.random() < 0.15 else "",
            )
        )
        left -= count

    return found


def _action(dice: random.Random, moments: _Moments) -> Action:
    return Action(dice.choice(list(Verb)), moments.draw(), dice.randrange(100))


def _fault(dice: random.Random, moments: _Moments) -> Fault:
    trouble, cluster = dice.choice(list(Trouble)), dice.choice(CLUSTERS)
    at, seconds = moments.draw(), dice.choice((1.0, 5.0, 15.0, 40.0)) * dice.random()
    match trouble:
        case Trouble.ERRORS:
            share, status = dice.choice((0.1, 0.5, 1.0)), dice.choice((500, 500, 409, 429, 403))
            return Fault(trouble, cluster, at, seconds, share, status)
        case Trouble.LOST_ANSWERS:
            return Fault(trouble, cluster, at, seconds, dice.choice((0.1, 0.5)))
        case Trouble.RESTART:
            return Fault(trouble, cluster, at, seconds * dice.choice((0.0, 1.0)))
        case Trouble.FREEZE | Trouble.STOP | Trouble.SLOW:
            return Fault(trouble, cluster, at, seconds)
        case _:
            return Fault(trouble, cluster, at)
