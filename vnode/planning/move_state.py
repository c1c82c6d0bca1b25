"""What moves of a workload depend on, at one moment, and what is decided by it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from vnode.api.durations import TICK
from vnode.api.owners import OwnerKey
from vnode.planning.revisions import UNREVISED, Revision
from vnode.planning.seats import Seats
from vnode.planning.workload_pod import WorkloadPod


class Replica(NamedTuple):
    """A live pod of the workload. One is made of each pod at each look, a tuple in half the time of
    a dataclass."""

    uid: str
    node: str
    """Where it is bound, or else planned for; "" if it has no place yet."""
    bound: bool = True
    ready: bool = True
    age: float = 0.0
    """Seconds."""
    movable: bool = True
    """Its owner replaces it, and may be disturbed."""
    overflowed: bool = False
    """It is not where it was planned."""
    waiting: bool = False
    """It has no place, and has been unschedulable for as long as the policy has pods wait."""
    placeholders: tuple[str, ...] = ()
    """Where it waits for room, too."""
    owner: OwnerKey | None = None
    """UID of its controller: another ReplicaSet of a Deployment has another template."""
    revision: Revision = UNREVISED


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadState:
    """A workload at one moment."""

    replicas: tuple[Replica, ...]
    seats: Seats
    """Of the clusters that can take its pods, given room."""
    included: frozenset[str]
    """All clusters of the policy."""
    room: Mapping[str, int]
    """Cluster -> how many more could start there now, and could for long enough."""
    limit: int = 1
    """So many are moved at once."""
    under_way: int = 0
    """Moves that are not over."""
    unreplaced: int = 0
    """Pods that somebody has deleted, and that their owner replaces only once they are gone."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Cluster -> moves to it, of which the new pod does not exist yet."""
    caps: Mapping[str, int] = field(default_factory=dict)
    """Cluster that is drained -> pods that may stay."""
    destination: str = ""
    """The cluster that was chosen for all of a workload that is kept together; "" if none was."""
    overflows: bool = True
    """A pod may wait in another cluster beside its planned one."""

    @property
    def total(self) -> int:
        """Its pods, and those that are to replace moved ones."""
        return len(self.replicas) + sum(self.missing.values())


@dataclass(frozen=True, slots=True)
class PlannedEviction:
    """One pod to be evicted, with the numbers that say why."""

    uid: str
    source: str
    target: str
    there: int
    """Pods in the source."""
    planned: int
    """Pods that the source is to have."""
    replicas: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now."""

    evictions: tuple[PlannedEviction, ...] = ()
    left: int = 0
    """Pods too many where they are, which these steps do not move."""
    why: str = ""
    """Why these are not moved now, for people; "" if there are none."""
    full: tuple[str, ...] = ()
    """Clusters that they could go to if there were room, where that is why."""
    is_stuck: bool = False
    """Nothing is under way that would help: room is missing, or a place in the plan."""
    destination: str = ""
    """The cluster that all pods of a workload which is kept together are to go to from now on."""


def replicas_of(
    members: Mapping[str, WorkloadPod],
    evicted: Collection[str],
    now: datetime,
    patience: float,
    *,
    moves_jobs: bool = False,
) -> tuple[Replica, ...]:
    """Return what moves look at of pods, which it gets by UID, but for those that were evicted."""
    since = now.timestamp() - patience + TICK
    return tuple(
        replica_of(member, now, since, moves_jobs=moves_jobs)
        for uid, member in members.items()
        if uid not in evicted
    )


def replica_of(
    member: WorkloadPod, now: datetime, since: float, *, moves_jobs: bool = False
) -> Replica:
    """Return what moves look at of a pod, which waits if it is unschedulable since that moment."""
    facts = member.facts()
    return Replica(
        member.uid,
        member.node or member.aim,
        bound=bool(member.node),
        ready=facts.ready,
        age=(now - facts.created).total_seconds() if facts.created else 0.0,
        movable=facts.movable and (moves_jobs or not facts.of_job),
        overflowed=facts.overflowed,
        waiting=member.since is not None and member.since <= since,
        placeholders=member.placeholders,
        owner=facts.owner,
        revision=member.revision,
    )
