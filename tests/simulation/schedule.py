"""One schedule: what users want and do, what breaks, and how slow all is."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tests.simulation.override_policies import OverrideChange
from tests.simulation.policies import Cordon, Loss, PolicyChange, PolicySchedule, Rollout

SOURCE: Final = "c1"
TARGETS: Final = ("c2", "c3")
"""The clusters that pods may run in, of which a schedule may have only the first."""
SPAN: Final = 40.0
"""Seconds within which everything happens; then all heals."""


class WorkloadOwner(StrEnum):
    """Who makes the pods of a workload, and again when they are gone."""

    USER = "user"  # nobody makes them again
    REPLICA_SET = "replicaset"  # under new names, as soon as one begins to end
    STATEFUL_SET = "statefulset"  # under the same name, when the former one is gone
    JOB = "job"  # until as many as wanted have succeeded; its finalizer holds them until counted


@dataclass(frozen=True, slots=True)
class SimulatedWorkload:
    """Pods that are alike.

    They run for `runs` seconds, 0 for ever, and then fail with the chance `fails`; they stop within
    `farewell` seconds of being asked to. `node` is the target whose virtual node their user has
    chosen without any scheduler, "" for none; `devices` are of an extended resource.
    """

    name: str
    owner: WorkloadOwner
    at: float
    count: int = 1
    cpu: int = 1
    runs: float = 0.0
    fails: float = 0.0
    grace: int = 30
    farewell: float = 1.0
    node: str = ""
    devices: int = 0

    def __str__(self) -> str:
        times = f"for {self.runs:.1f}s" if self.runs else "for ever"
        where = f" on {self.node}" if self.node else ""
        return (
            f"+{self.at:.1f}s create {self.owner} {self.name} x{self.count} cpu={self.cpu} {times}"
            f" fails={self.fails:g} grace={self.grace} farewell={self.farewell:.1f}s{where}"
        )


class PodVerb(StrEnum):
    """What users do to pods, and others to delegates and chaperons."""

    DELETE = "delete pod"
    FORCE_DELETE = "force-delete pod"
    EVICT = "evict pod"
    ANNOTATE = "annotate pod"
    LABEL = "label pod"
    SET_IMAGE = "set another image of pod"
    RESIZE = "resize pod that waits"
    REMOVE = "remove workload"
    DELETE_DELEGATE = "delete delegate"
    EVICT_DELEGATE = "evict delegate"
    ANNOTATE_DELEGATE = "annotate delegate"
    DELETE_CHAPERON = "delete chaperon"
    CLEAN_UP = "clean up finished delegates"


@dataclass(frozen=True, slots=True)
class PodAction:
    """Something done to one of the things that are there then; `number` says to which."""

    verb: PodVerb
    at: float
    number: int

    def __str__(self) -> str:
        return f"+{self.at:.1f}s {self.verb} #{self.number}"


class ClusterTrouble(StrEnum):
    """What goes wrong with an API server, or with the agent of a cluster."""

    ERRORS = "errors"
    LOST_ANSWERS = "lost answers"
    LATE_WRITES = "late writes"  # whoever sent them has given up by then
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
    CUT_STREAMS = "cut streams"  # of sources to a target


@dataclass(frozen=True, slots=True)
class ClusterFault:
    """Trouble with one cluster; `share` is that of the requests that fail."""

    trouble: ClusterTrouble
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

    `nodes` has the CPUs of each node of each target, and so all targets that there are.
    """

    seed: int
    latency: float
    nodes: dict[str, tuple[int, ...]]
    workloads: tuple[SimulatedWorkload, ...]
    actions: tuple[PodAction, ...]
    faults: tuple[ClusterFault, ...]
    parallel: int = 1
    policies: PolicySchedule = field(default_factory=PolicySchedule)
    overrides: tuple[OverrideChange, ...] = ()

    @property
    def clusters(self) -> tuple[str, ...]:
        """The source, and the targets."""
        return (SOURCE, *self.nodes)

    @property
    def all_is_well(self) -> bool:
        """Whether all answer all the time, whatever the taints of virtual nodes say."""
        return not self.faults and not any(loss.is_real for loss in self.policies.losses)

    def lines(self) -> list[str]:
        """Describe it, in the order of its times."""
        parts: list[
            SimulatedWorkload
            | PodAction
            | ClusterFault
            | PolicyChange
            | Cordon
            | Loss
            | Rollout
            | OverrideChange
        ]
        parts = [*self.workloads, *self.actions, *self.faults, *self.overrides]
        parts += [*self.policies.changes, *self.policies.cordons, *self.policies.losses]
        parts += self.policies.rollouts
        parts.sort(key=lambda each: each.at)
        head = f"latency {self.latency:g}s, nodes {self.nodes}, {self.parallel} candidates at once"
        return [head, *map(str, parts)]
