"""What users want and do, and what breaks, as data: pure. `drawing` makes steps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

SOURCE = "c1"
TARGETS = ("c2", "c3")
FAULT_PROXIES = ("c1>c1", "c1>c2", "c1>c3", "c2>c2", "c3>c3")
"""Whose agent, and whose API server."""

MOST_WORKLOADS, MOST_REPLICAS = 8, 8
CROWD = 60
"""Replicas of a Deployment whose target is to freeze: more than vnode looks at at a time."""
NAMES = ("one", "two", "three")
"""Of ConfigMaps and Secrets that pods use, be they there or not."""


class WorkloadKind(StrEnum):
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
class JobTerms:
    """How a Job's pods end, and what the Job makes of it. `seconds` is how long each pod runs.

    `ignores_disruptions` is a podFailurePolicy that ignores DisruptionTarget, fails the Job for an
    exit code that no pod has, and retries nothing else. `replaces_failed` is podReplacementPolicy
    Failed: a pod is replaced once it has ended, and not before.
    """

    seconds: int = 1
    indexed: bool = False
    ignores_disruptions: bool = False
    replaces_failed: bool = False


class DeviceUse(StrEnum):
    """By what its pods ask for an accelerator."""

    NONE = ""
    GPU = "GPU"
    CLAIM = "claim"


@dataclass(frozen=True, slots=True)
class WantedWorkload:
    """One of them. `hopeless` fits no target; `patience` is tolerationSeconds, 0 for the default;
    `farewell` is for how many seconds a delegate goes on after it was asked to end; `uses` are keys
    of ConfigMaps and Secrets; `on` is the only target that may have it; `budget` says that it has a
    PodDisruptionBudget with maxUnavailable 1; `gang` is how many of its pods start together."""

    name: str
    kind: WorkloadKind
    replicas: int = 1
    version: int = 1
    hopeless: bool = False
    patience: int = 0
    farewell: int = 0
    uses: tuple[str, ...] = ()
    on: str = ""
    budget: bool = False
    gang: int = 0
    device: DeviceUse = DeviceUse.NONE
    job: JobTerms = JobTerms()


@dataclass(frozen=True, slots=True)
class Wish:
    """All that users want, by name or key; `count` makes names that were never used."""

    workloads: Mapping[str, WantedWorkload] = field(default_factory=dict)
    count: int = 0
    things: Mapping[str, Thing] = field(default_factory=dict)

    def with_(self, workload: WantedWorkload) -> Wish:
        """Return the same, with that workload new or changed."""
        return replace(self, workloads={**self.workloads, workload.name: workload})

    def without(self, name: str) -> Wish:
        """Return the same, without it."""
        return replace(self, workloads={n: w for n, w in self.workloads.items() if n != name})

    def named(self, workload: WantedWorkload) -> tuple[WantedWorkload, Wish]:
        """Return the workload under a name that was never used, and the same without such a one."""
        named = replace(workload, name=f"{workload.kind}-{self.count}")
        return named, replace(self, count=self.count + 1)


class Verb(StrEnum):
    """What users and administrators do."""

    CREATE = "create"
    CHANGE = "change"  # scale, or roll out
    REMOVE = "remove"
    DELETE_POD = "delete pod"
    FORCE_DELETE_POD = "force-delete pod"
    EVICT_POD = "evict pod"
    EVICT_DELEGATE = "evict delegate"
    EVICT_ALL = "evict all pods"  # as `kubectl drain` does
    DELETE_DELEGATE = "delete delegate"
    DELETE_CHAPERON = "delete chaperon"
    EDIT_TARGET = "edit target"
    ROTATE_TOKEN = "rotate token"
    EXCHANGE_SECRET = "exchange Secret"  # for that of another target, and put it back
    REMOVE_TARGET = "remove target"
    DISCONNECT = "disconnect"
    UNINSTALL = "uninstall"  # in a target; its delegates end
    UNINSTALL_KEEP = "uninstall, keep delegates"
    PUT_THING = "put"
    REMOVE_THING = "take away"
    ANNOTATE_DELEGATE = "annotate delegate"  # which ends nothing: its proxy shows it


LEAVING = (Verb.DISCONNECT, Verb.UNINSTALL, Verb.UNINSTALL_KEEP)
"""After these, vnode is made whole again by `vnode install` and `vnode connect`."""
ENDING = (Verb.REMOVE_TARGET, Verb.DISCONNECT, Verb.UNINSTALL)
"""With these, the pods of a target end."""
EVICTIONS = (Verb.EVICT_POD, Verb.EVICT_DELEGATE, Verb.EVICT_ALL)
"""What sets the condition DisruptionTarget."""
ON_PODS = (
    *EVICTIONS,
    Verb.DELETE_POD,
    Verb.FORCE_DELETE_POD,
    Verb.DELETE_DELEGATE,
    Verb.DELETE_CHAPERON,
)


@dataclass(frozen=True, slots=True)
class Action:
    """Something that is done `at` seconds after the step began."""

    verb: Verb
    at: float
    workload: WantedWorkload | None = None
    target: str = ""
    number: int = 0
    thing: Thing | None = None
    seconds: float = 0.0  # of EXCHANGE_SECRET: until it is put back

    def __str__(self) -> str:
        what = self.target
        if self.thing:
            what = f"{self.thing.key} v{self.thing.version}.{self.thing.label}"

        if self.workload:
            what = f"{self.workload.kind} {self.workload.name} x{self.workload.replicas}"
            what += f" on {self.workload.on}" if self.workload.on else ""
            what += f" in a gang of {self.workload.gang}" if self.workload.gang else ""
            what += f" with a {self.workload.device}" if self.workload.device else ""
            what += f" v{self.workload.version}" if self.verb is Verb.CHANGE else ""

        what += f" #{self.number}" if self.verb in ON_PODS else ""
        what += f" for {self.seconds:.1f}s" if self.seconds else ""
        return f"+{self.at:.1f}s {self.verb} {what}"

    @property
    def about(self) -> frozenset[str]:
        """What no other action of the step may be about, but for more on a Job that it creates."""
        if self.verb is Verb.EXCHANGE_SECRET:
            return frozenset(TARGETS)

        if self.thing is not None:
            return frozenset({self.thing.key})

        return frozenset({self.workload.name if self.workload else self.target})

    @property
    def timed_on(self) -> str:
        """The target that shows with it how fast it is; "" if the action takes any time."""
        workload = self.workload
        if workload is None:
            return ""

        starts = (
            self.verb is Verb.CREATE and workload.kind is WorkloadKind.POD and not workload.hopeless
        )
        return workload.on if starts or self.verb is Verb.ANNOTATE_DELEGATE else ""


class Trouble(StrEnum):
    """What breaks."""

    KILL = "kill -9"
    STOP = "stop"  # SIGSTOP: connections stay open, and nothing answers
    FREEZE = "freeze"  # a partition: packets vanish
    REFUSE = "cut"  # connections end at once
    RESET = "reset"
    STALL_WATCHES = "stall watches"
    SLOW = "slow"
    ERRORS = "errors"
    LOSE = "lose answers"


@dataclass(frozen=True, slots=True)
class Fault:
    """Trouble of a fault proxy, or of a process (`c1/agent`), from `at` on for some seconds."""

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

    @property
    def outage(self) -> str:
        """The cluster whose API server answers nobody; "" if that of none is broken."""
        cluster, _, process = self.where.partition("/")
        return cluster if process == "kube-apiserver" else ""

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
        return frozenset(
            action.workload.name
            for action in self.actions
            if action.workload and action.verb is not Verb.ANNOTATE_DELEGATE
        )

    @property
    def undisturbed(self) -> frozenset[str]:
        """The targets that work as usual, and so does the source with them, whatever others do."""
        return frozenset(
            target
            for target in TARGETS
            if not any({SOURCE, target} >= fault.clusters for fault in self.faults)
            and not any(target in action.about for action in self.actions)
        )

    @property
    def removed_targets(self) -> frozenset[str]:
        """The targets whose pods end with them."""
        removed = (action for action in self.actions if action.verb in ENDING)
        return frozenset(action.target for action in removed)

    @property
    def left_targets(self) -> frozenset[str]:
        """The targets that vnode leaves, or whose Target is removed, for a while."""
        leaving = (*LEAVING, *ENDING, Verb.EXCHANGE_SECRET)
        found = (action.about for action in self.actions if action.verb in leaving)
        return frozenset(TARGETS) & frozenset().union(*found)

    @property
    def acted_targets(self) -> frozenset[str]:
        """The targets that somebody does anything about."""
        return frozenset(TARGETS) & frozenset().union(*(action.about for action in self.actions))

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
