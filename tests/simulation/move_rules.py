"""What moving pods promises while it goes on: how many at once, and for how long.

Fed with each change of the source, as `Monitor` is. The simulation knows which evictions are moves,
since nobody else asks the Eviction API: users end pods in the store. It knows less than the mover
of which pod replaces which, so that any pod which becomes ready ends a move here.

Containers that stop take their time, and a cluster that does not answer cannot be told to stop
any. So what is counted of the pods that run beside their replacements are those that have not been
told to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.apiserver.store import Change
from tests.faults.snapshot import Violation, node_of
from tests.simulation.clusters import NAMESPACE, SimulatedCluster
from tests.simulation.owners import Controllers
from tests.simulation.schedule import Schedule, WorkloadOwner
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object
from vnode.placement.policies import decoding
from vnode.planning.failover import OWNER
from vnode.planning.move_policy import STARTING


@dataclass(slots=True)
class WorkloadUnderMove:
    """The moves of one workload. Moments are of the loop."""

    unready: dict[str, float] = field(default_factory=dict)
    """Live pods that are not ready -> since when."""
    ending: dict[str, float] = field(default_factory=dict)
    """UIDs of pods that end -> since when."""
    begun: list[float] = field(default_factory=list)
    """When the pods were evicted whose moves are not over, oldest first."""
    kept: set[str] = field(default_factory=set)
    """UIDs of the evicted pods that are still there."""
    run_on: dict[str, float] = field(default_factory=dict)
    """UIDs of evicted pods that are to run on, since no pod has become ready after them -> when
    they were evicted."""
    surplus_since: float | None = None
    """Since when more of these run than there are pods to wait for."""

    def forget_old_moves(self, now: float) -> None:
        """End the moves that nobody waits for any more."""
        starting = max(self.unready.values(), default=0.0)
        self.begun = [at for at in self.begun if now - at < OWNER or starting >= at]
        self.begun = [at for at in self.begun if now - at < STARTING]


@dataclass(slots=True)
class MoveRules:
    """Hears of all changes; says nothing of schedules without policies."""

    source: SimulatedCluster
    targets: Mapping[str, SimulatedCluster]
    owners: Controllers
    schedule: Schedule
    violations: list[Violation] = field(default_factory=list)
    moves: int = 0
    _workloads: dict[str, WorkloadUnderMove] = field(default_factory=dict)

    def follow(self) -> None:
        """Hear of all changes from now on."""
        if self.schedule.policies.changes:
            self.source.server.store.changed.add(self._on_source)
            for cluster in self.targets.values():
                cluster.server.store.changed.add(self._on_target)

    @property
    def _lag(self) -> float:
        """Seconds after which everybody knows of a change, where nothing fails."""
        return 20 * self.schedule.latency + 3.0

    def _on_source(self, kind: Kind, change: Change) -> None:
        if kind is not kinds.PODS:
            return

        now = asyncio.get_running_loop().time()
        pod = change.new or change.old or {}
        name, uid = objects.labels(pod).get("app", ""), objects.uid(pod)
        workload = self._workloads.setdefault(name, WorkloadUnderMove())
        is_live = change.new is not None and not objects.is_terminating(pod)
        if not is_live or objects.is_finished(pod) or _is_ready(pod):
            if workload.unready.pop(uid, None) is not None and is_live:
                workload.begun = workload.begun[1:]
                workload.run_on.clear()
        else:
            workload.unready.setdefault(uid, now)

        # One that was moved on while it started serves by now, and waits in place of earlier ones.
        if uid in workload.kept and _is_ready(pod) and not _is_ready(change.old or {}):
            workload.run_on.clear()

        was_live = change.old is not None and not objects.is_terminating(change.old)
        if was_live and change.new is not None and not is_live and self._is_move(uid):
            self._on_move(name, workload, pod, now)

            if self._runs_on(name, pod):
                workload.run_on[uid] = now

        if change.new is None:
            workload.kept.discard(uid)
            workload.ending.pop(uid, None)
        elif not is_live:
            workload.ending.setdefault(uid, now)

        self._look_at_kept(name, workload, now)

    def _on_target(self, kind: Kind, change: Change) -> None:
        if kind is not kinds.PODS:
            return

        now, old, new = asyncio.get_running_loop().time(), change.old, change.new
        uid = objects.labels(new or old or {}).get(keys.PARENT_UID, "")
        ran = bool(node_of(old or {}))  # and is no placeholder of the pod, which goes at once
        is_ending = ran and (new is None or objects.is_terminating(new))
        for name, workload in self._workloads.items():
            moved = workload.run_on.get(uid)
            is_early = moved is not None and now - moved < STARTING - self._lag
            is_ours = uid not in self.owners.touched and not self.owners.is_spent(name)
            if is_ending and is_early and is_ours:
                what = f"{objects.key(new or old or {})}, a pod of {name}, is told to end"
                self._wrong("a moved pod runs on until its replacement is ready", what)
                workload.run_on.clear()

            self._look_at_kept(name, workload, now)

    def _runs_on(self, name: str, pod: Object) -> bool:
        """Tell whether an evicted pod is to run on, as far as nothing comes in between."""
        wanted, policies = self.owners.wanted.get(name), self.schedule.policies
        is_replaced = wanted is not None and wanted.owner is WorkloadOwner.REPLICA_SET
        may_end = not self.schedule.all_is_well or policies.losses or policies.failover
        return is_replaced and _is_ready(pod) and not may_end

    def _is_move(self, uid: str) -> bool:
        evictions = self.source.server.received("create", kinds.PODS, "eviction")
        asked = any(e.body["deleteOptions"]["preconditions"]["uid"] == uid for e in evictions)
        return asked and uid not in self.owners.touched

    def _on_move(self, name: str, workload: WorkloadUnderMove, pod: Object, now: float) -> None:
        """Look at a pod that was evicted just now."""
        self.moves += 1
        workload.forget_old_moves(now)
        workload.begun.append(now)
        workload.kept.add(objects.uid(pod))
        live = [p for p in self.owners.pods_of(name) if not objects.is_terminating(p)]
        wanted = self.owners.wanted.get(name)
        # Without this one, which is terminating by now. A rollout has more pods than are wanted.
        there = len(live) + (1 if wanted else len(workload.begun))
        most = self._most_at_once(max(wanted.count, there) if wanted else there, now)
        if len(workload.begun) > most:
            what = f"{objects.key(pod)}: {len(workload.begun)} moves at once, {most} may be"
            self._wrong("moves keep to maxConcurrent", what)

        waiting = {objects.uid(p) for p in live if _is_unschedulable(p)}  # they do not start
        starting = sum(
            self._lag < now - at < STARTING
            for uid, at in workload.unready.items()
            if uid not in waiting
        )
        if wanted is not None and wanted.owner is WorkloadOwner.STATEFUL_SET:  # replaced when gone
            starting += sum(self._lag < now - at < STARTING for at in workload.ending.values())

        if self.schedule.all_is_well and starting and starting + 1 > most:
            what = f"{objects.key(pod)} is moved, and {starting} others are not ready"
            self._wrong("moves wait for pods that start", what)

    def _most_at_once(self, replicas: int, now: float) -> int:
        """Return how many of so many pods may be moved at once, by any policy that ever was."""
        specs = [c.object(NAMESPACE) for c in self.schedule.policies.changes if c.at <= now]
        policies = [decoding.decode(each) for each in specs if each["spec"] is not None]
        return max(policy.failback.max_concurrent.of(replicas) for policy in policies)

    def _look_at_kept(self, name: str, workload: WorkloadUnderMove, now: float) -> None:
        """Look at evicted pods that run on until their replacements are ready."""
        if not workload.kept or not self.schedule.all_is_well:
            return

        since = workload.surplus_since
        # A ReplicaSet that is being replaced makes no other pod, which is known after a while.
        most = self._lag + (OWNER if self.owners.was_rolled_out(name) else 0.0)
        if since is not None and now - since > most:
            what = f"{name} had more pods for {now - since:.1f} s than wait for a replacement"
            self._wrong("a moved pod ends when its replacement is ready", what)
            workload.kept.clear()

        untold = sum(map(self._runs_untold, workload.kept))
        wanted = self.owners.wanted.get(name)
        missing = self.owners.missing(wanted) if wanted is not None else 0
        if wanted is None or wanted.owner is not WorkloadOwner.REPLICA_SET:
            untold = 0

        if untold <= len(workload.unready) + max(0, missing):
            workload.surplus_since = None
        elif since is None:
            workload.surplus_since = now

    def _runs_untold(self, uid: str) -> bool:
        return any(
            objects.labels(pod).get(keys.PARENT_UID) == uid
            and bool(node_of(pod))
            and not objects.is_terminating(pod)
            and not objects.is_finished(pod)
            for cluster in self.targets.values()
            for pod in cluster.pods()
        )

    def _wrong(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, what))


def _is_ready(pod: Object) -> bool:
    return (objects.condition(pod, "Ready") or {}).get("status") == "True"


def _is_unschedulable(pod: Object) -> bool:
    return (objects.condition(pod, "PodScheduled") or {}).get("status") == "False"
