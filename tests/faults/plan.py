"""What users do and what breaks, step by step, drawn from a seed: pure.

`draw` knows only what the users want by now (`Wish`), never what the clusters made of it, so a seed
gives the same steps each time. Which pod an action hits is a number; whoever acts takes the pod of
that number, modulo how many there are.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

SOURCE = "c1"
TARGETS = ("c2", "c3")
LANES = ("c1>c1", "c1>c2", "c1>c3", "c2>c2", "c3>c3")
"""Whose agent, and whose API server."""

MOST_WORKLOADS, MOST_REPLICAS = 8, 8


class Kind(StrEnum):
    """What a user may want."""

    POD = "pod"
    DEPLOYMENT = "deployment"
    STATEFUL_SET = "statefulset"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Workload:
    """One of them. `hopeless` fits no target; `patience` is tolerationSeconds, 0 for the default;
    `farewell` is for how many seconds a delegate goes on after it was asked to end."""

    name: str
    kind: Kind
    replicas: int = 1
    version: int = 1
    hopeless: bool = False
    patience: int = 0
    farewell: int = 0


@dataclass(frozen=True, slots=True)
class Wish:
    """All that users want, by name; `count` makes names that were never used."""

    workloads: Mapping[str, Workload] = field(default_factory=dict)
    count: int = 0

    def with_(self, workload: Workload) -> Wish:
        """The same, with that workload new or changed."""
        return replace(self, workloads={**self.workloads, workload.name: workload})

    def without(self, name: str) -> Wish:
        """The same, without it."""
        return replace(self, workloads={n: w for n, w in self.workloads.items() if n != name})


class Verb(StrEnum):
    """What users and administrators do."""

    CREATE = "create"
    CHANGE = "change"  # scale, or roll out
    REMOVE = "remove"
    DELETE_POD = "delete pod"
    FORCE_DELETE_POD = "force-delete pod"
    EVICT_POD = "evict pod"
    EVICT_DELEGATE = "evict delegate"
    DELETE_DELEGATE = "delete delegate"
    DELETE_CHAPERON = "delete chaperon"
    EDIT_TARGET = "edit target"
    ROTATE_TOKEN = "rotate token"
    REMOVE_TARGET = "remove target"


ON_PODS = (
    Verb.DELETE_POD,
    Verb.FORCE_DELETE_POD,
    Verb.EVICT_POD,
    Verb.EVICT_DELEGATE,
    Verb.DELETE_DELEGATE,
    Verb.DELETE_CHAPERON,
)


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done `at` seconds after the step began."""

    verb: Verb
    at: float
    workload: Workload | None = None
    target: str = ""
    number: int = 0

    def __str__(self) -> str:
        what = self.target
        if self.workload:
            what = f"{self.workload.kind} {self.workload.name} x{self.workload.replicas}"
            what += f" v{self.workload.version}" if self.verb is Verb.CHANGE else ""

        return f"+{self.at:.1f}s {self.verb} {what}" + (
            f" #{self.number}" if self.verb in ON_PODS else ""
        )


class Trouble(StrEnum):
    """What breaks."""

    KILL = "kill -9"
    FREEZE = "freeze"  # a partition: packets vanish
    REFUSE = "cut"  # connections end at once
    RESET = "reset"
    STALL_WATCHES = "stall watches"
    SLOW = "slow"
    ERRORS = "errors"
    LOSE = "lose answers"


@dataclass(frozen=True, slots=True)
class Fault:
    """Trouble of a lane, or of a process (`c1/agent`), from `at` on for some seconds."""

    trouble: Trouble
    where: str
    at: float
    seconds: float
    amount: float = 0.0  # of SLOW: seconds a piece; of ERRORS and LOSE: the share
    status: int = 0

    @property
    def clusters(self) -> frozenset[str]:
        """Whose processes or ways it is about."""
        return frozenset(self.where.partition("/")[0].split(">"))

    def __str__(self) -> str:
        more = f" {self.status}" if self.status else ""
        more += f" {self.amount:g}" if self.amount else ""
        return f"+{self.at:.1f}s {self.trouble}{more} {self.where} for {self.seconds:.1f}s"


@dataclass(frozen=True, slots=True)
class Step:
    """Actions and faults that overlap."""

    actions: tuple[Action, ...]
    faults: tuple[Fault, ...]

    @property
    def touched(self) -> frozenset[str]:
        """The workloads whose pods somebody ends, or may end, on purpose."""
        return frozenset(action.workload.name for action in self.actions if action.workload)

    @property
    def removed_targets(self) -> frozenset[str]:
        """The targets whose pods end with them."""
        removed = (a for a in self.actions if a.verb is Verb.REMOVE_TARGET)
        return frozenset(action.target for action in removed)

    @property
    def forced_targets(self) -> frozenset[str]:
        """The targets that were removed while they, or the way there, may have been broken.

        Whoever does so says that the cluster is gone, as one who deletes a Node does: its pods are
        replaced though nobody knows whether their containers have stopped (docs/limits.md).
        """
        return frozenset(
            target
            for target in self.removed_targets
            if any({SOURCE, target} >= fault.clusters for fault in self.faults)
        )


PROCESSES = (
    *(f"{cluster}/agent" for cluster in (SOURCE, SOURCE, *TARGETS)),  # the source's twice as often
    *(f"{target}/candidate-scheduler" for target in TARGETS),
    *(f"{cluster}/kube-apiserver" for cluster in (SOURCE, *TARGETS)),
    f"{SOURCE}/kube-controller-manager",
)


def draw(dice: random.Random, wish: Wish, *, longest: float) -> tuple[Step, Wish]:
    """The next step, and what users want after it. No fault takes longer than `longest` seconds."""
    actions: list[Action] = []
    touched: set[str] = set()
    for _ in range(dice.randint(2, 8)):
        action, wish = _action(dice, wish, touched)
        if action is not None:
            actions.append(action)
            touched |= {action.workload.name} if action.workload else {action.target}

    faults = tuple(_fault(dice, longest) for _ in range(dice.randint(2, 6)))
    return Step(tuple(sorted(actions, key=lambda a: a.at)), faults), wish


def _action(dice: random.Random, wish: Wish, touched: set[str]) -> tuple[Action | None, Wish]:
    """One action on what no other action of the step is about."""
    at = round(dice.uniform(0, 8), 1)
    free = [w for name, w in sorted(wish.workloads.items()) if name not in touched]
    chance = dice.random()
    if not free or (chance < 0.4 and len(wish.workloads) < MOST_WORKLOADS):
        workload, wish = _new(dice, wish)
        return Action(Verb.CREATE, at, workload), wish.with_(workload)

    if chance > 0.85:
        verb = dice.choice((Verb.EDIT_TARGET, Verb.ROTATE_TOKEN, Verb.REMOVE_TARGET))
        target = dice.choice(TARGETS)
        return (None if target in touched else Action(verb, at, target=target)), wish

    chosen = dice.choice(free)
    if chance > 0.75 or chosen.kind is Kind.JOB:
        return Action(Verb.REMOVE, at, chosen), wish.without(chosen.name)

    if chance > 0.55 and chosen.kind is not Kind.POD:
        chosen = _changed(dice, chosen)
        return Action(Verb.CHANGE, at, chosen), wish.with_(chosen)

    verb, number = dice.choice(ON_PODS), dice.randrange(MOST_REPLICAS)
    after = wish.without(chosen.name) if chosen.kind is Kind.POD else wish
    return Action(verb, at, chosen, number=number), after


def _new(dice: random.Random, wish: Wish) -> tuple[Workload, Wish]:
    kind = dice.choice((Kind.POD, Kind.DEPLOYMENT, Kind.DEPLOYMENT, Kind.STATEFUL_SET, Kind.JOB))
    many = dice.randint(1, MOST_REPLICAS if kind is Kind.DEPLOYMENT else 4)
    workload = Workload(
        f"{kind}-{wish.count}",
        kind,
        replicas=1 if kind is Kind.POD else many,
        hopeless=kind is Kind.POD and dice.random() < 0.3,
        patience=dice.choice((0, 0, 5)),
        farewell=dice.choice((0, 0, 3)),
    )
    return workload, replace(wish, count=wish.count + 1)


def _changed(dice: random.Random, workload: Workload) -> Workload:
    if dice.random() < 0.4:
        return replace(workload, version=workload.version + 1)

    most = MOST_REPLICAS if workload.kind is Kind.DEPLOYMENT else 4
    return replace(workload, replicas=dice.randint(1, most))


def _fault(dice: random.Random, longest: float) -> Fault:
    at, seconds = round(dice.uniform(0, 5), 1), round(min(longest, dice.expovariate(1 / 8)) + 1, 1)
    trouble = dice.choice((Trouble.KILL, *Trouble))
    if trouble is Trouble.KILL:
        return Fault(trouble, dice.choice(PROCESSES), at, min(seconds, 10.0))

    lane = dice.choice((*LANES, *LANES[1:3]))
    match trouble:
        case Trouble.SLOW:
            return Fault(trouble, lane, at, seconds, amount=round(dice.uniform(0.05, 0.5), 2))
        case Trouble.ERRORS:
            status = dice.choice((409, 410, 429, 500))
            share = round(dice.uniform(0.1, 0.8), 1)
            return Fault(trouble, lane, at, seconds, amount=share, status=status)
        case Trouble.LOSE:
            return Fault(trouble, lane, at, seconds, amount=round(dice.uniform(0.1, 0.6), 1))
        case _:
            return Fault(trouble, lane, at, seconds)
