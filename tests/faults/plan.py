"""What users want and do, and what breaks, as data: pure. `drawing` makes steps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

SOURCE = "c1"
TARGETS = ("c2", "c3")
LANES = ("c1>c1", "c1>c2", "c1>c3", "c2>c2", "c3>c3")
"""Whose agent, and whose API server."""

MOST_WORKLOADS, MOST_REPLICAS = 8, 8
NAMES = ("one", "two", "three")
"""Of ConfigMaps and Secrets that pods use, be they there or not."""


class Kind(StrEnum):
    """What a user may want."""

    POD = "pod"
    DEPLOYMENT = "deployment"
    STATEFUL_SET = "statefulset"
    JOB = "job"


class ThingKind(StrEnum):
    """What follows pods."""

    CONFIG_MAP = "configmap"
    SECRET = "secret"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Thing:
    """An object that follows pods: those that use its name, or, of a Service, those of the workload
    of its name. `version` is in its contents, `label` on it."""

    name: str
    kind: ThingKind
    version: int = 1
    label: int = 1

    @property
    def key(self) -> str:
        """Unique among all things."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Workload:
    """One of them. `hopeless` fits no target; `patience` is tolerationSeconds, 0 for the default;
    `farewell` is for how many seconds a delegate goes on after it was asked to end; `uses` are keys
    of ConfigMaps and Secrets."""

    name: str
    kind: Kind
    replicas: int = 1
    version: int = 1
    hopeless: bool = False
    patience: int = 0
    farewell: int = 0
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """All that users want, by name or key; `count` makes names that were never used."""

    workloads: Mapping[str, Workload] = field(default_factory=dict)
    count: int = 0
    things: Mapping[str, Thing] = field(default_factory=dict)

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
    DISCONNECT = "disconnect"
    UNINSTALL = "uninstall"  # in a target; its delegates end
    UNINSTALL_KEEP = "uninstall, keep delegates"
    PUT_THING = "put"
    REMOVE_THING = "take away"


LEAVING = (Verb.DISCONNECT, Verb.UNINSTALL, Verb.UNINSTALL_KEEP)
"""After these, vnode is made whole again by `vnode install` and `vnode connect`."""
ENDING = (Verb.REMOVE_TARGET, Verb.DISCONNECT, Verb.UNINSTALL)
"""With these, the pods of a target end."""
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
    thing: Thing | None = None

    def __str__(self) -> str:
        what = self.target
        if self.thing:
            what = f"{self.thing.key} v{self.thing.version}.{self.thing.label}"

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
        removed = (action for action in self.actions if action.verb in ENDING)
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
