"""A source and targets in which gangs start, with the agents as production puts them together.

Owners make pods anew that were deleted before they had finished. `GangWatcher` knows at every
moment how many pods of a gang run, as kubelets have it, whatever API servers say.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from unittest.mock import patch

from tests.apiserver.store import Change
from tests.simulation import device_claims, kubelet, loop
from tests.simulation.agents import SimulatedAgent, streams_between
from tests.simulation.claim_rules import ClaimWatcher
from tests.simulation.clusters import NAMESPACE, SimulatedCluster, prepare_source, prepare_target
from tests.simulation.device_claims import ClaimAllocator, ClaimController
from tests.simulation.kube_scheduler import CandidateScheduler
from tests.simulation.kubelet import PodSimulator
from tests.simulation.owners import admitted, pod
from tests.simulation.schedule import SOURCE, SimulatedWorkload, WorkloadOwner
from vnode.api import keys, kinds, objects
from vnode.api.kinds import Kind
from vnode.api.objects import Object, Objects
from vnode.planning import kept_together
from vnode.scheduling import registry

ClaimedBy: TypeAlias = Literal["", "own", "shared"]
"""Whose the device is that a pod claims, if it claims one."""
HALF: Final = 3.0
"""Seconds for which too few pods of a gang may run."""


@dataclass(frozen=True, slots=True)
class GangJob:
    """Pods of one gang, which run for `runs` seconds, 0 for ever."""

    name: str
    minimum: int
    count: int
    at: float = 0.0
    runs: float = 0.0
    cpu: int = 1
    devices: int = 0
    """For each pod, but the first one, which launches the others."""
    minimums: tuple[str, ...] = ()
    """What each pod says, if not `minimum`."""
    source: str = SOURCE
    every: float = 0.0
    """Seconds between two pods that are created."""
    last_runs: float = 0.0
    """For how long the last of them runs, if not as long as the others."""
    owner: WorkloadOwner = WorkloadOwner.USER
    claims: ClaimedBy = ""
    """Whether each pod claims a device of its own, by a template, or all share one."""
    group: str = ""
    """A group that is kept together in one target, as by its operator's label."""


@dataclass(frozen=True, slots=True)
class AgentKill:
    """An agent that is killed, and started again after some seconds."""

    cluster: str
    at: float
    seconds: float = 0.5


@dataclass(slots=True)
class GangWatcher:
    """Notes gangs of which too few run for too long."""

    jobs: dict[str, GangJob]
    kubelets: dict[str, PodSimulator]
    started: dict[str, float] = field(default_factory=dict)  # gang -> when enough ran
    wrong: list[str] = field(default_factory=list)
    places: dict[str, set[str]] = field(default_factory=dict)  # gang -> targets where pods ran
    apart: dict[str, set[str]] = field(default_factory=dict)  # gang -> targets, at one time
    _half: dict[str, float] = field(default_factory=dict)  # gang -> since when

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            await asyncio.sleep(0.05)
            self._look(asyncio.get_running_loop().time())

    def _look(self, now: float) -> None:
        found: dict[str, Counter[str]] = {}  # gang -> its running pods in each target
        for target, nodes in self.kubelets.items():
            for key in nodes.running.values():
                gang = key.rpartition("/")[2].partition("-")[0]
                if gang in self.jobs:  # others take room only
                    found.setdefault(gang, Counter())[target] += 1

        for name in found.keys() | self._half.keys():
            job, there = self.jobs[name], found.get(name, Counter())
            count = there.total()
            self.places.setdefault(name, set()).update(there)
            if len(there) > 1:
                self.apart.setdefault(name, set(there))

            if count >= job.minimum:
                self.started.setdefault(name, now)
                self._half.pop(name, None)
            elif not count or (name in self.started):
                self._half.pop(name, None)
            elif now - self._half.setdefault(name, now) > HALF:
                self.wrong.append(f"{count} of {job.minimum} pods of {name} run at {now:.1f}")
                self._half[name] = now


class GangWorld:
    """All of it; `nodes` has the CPUs of each node of each target, `devices` those of the first.

    `claimable` are devices of theirs that pods get by claims.
    """

    def __init__(
        self,
        nodes: dict[str, tuple[int, ...]],
        jobs: Sequence[GangJob],
        seed: int,
        latency: float,
        devices: Mapping[str, tuple[int, ...]] | None = None,
        claimable: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        dice = random.Random(seed)
        self.nodes = nodes
        self.devices = devices or {}
        self.claimable = claimable or {}
        self.jobs = {job.name: job for job in jobs}
        sources = sorted({SOURCE, *(job.source for job in jobs)})
        self.clusters = {
            name: SimulatedCluster(name, random.Random(dice.random()), latency)
            for name in (*sources, *nodes)
        }
        self.sources = {name: self.clusters[name] for name in sources}
        servers = {name: self.clusters[name].server for name in nodes}
        targets = {name: self.clusters[name] for name in nodes}
        streams = streams_between(targets, lambda name: self.agents[name])
        self.agents = {
            name: SimulatedAgent(cluster, servers if name in sources else {}, 1, streams)
            for name, cluster in self.clusters.items()
        }
        self.kubelets = {name: PodSimulator(self.clusters[name]) for name in nodes}
        self.schedulers = {
            name: CandidateScheduler(self.clusters[name], self.agents[name]) for name in nodes
        }
        self.claims = ClaimWatcher(self.sources, {name: self.clusters[name] for name in nodes})
        self.watcher = GangWatcher(self.jobs, self.kubelets)
        self._made: dict[str, int] = {}

    def begin(self) -> None:
        """Start everybody."""
        for source in self.sources.values():
            prepare_source(source, list(self.nodes))
            source.server.store.changed.add(self._on_change)

        for name, cpus in self.nodes.items():
            prepare_target(self.clusters[name], cpus, self.devices.get(name, ()))

        if self.claimable:
            self._begin_claims()

        for name in self.nodes:
            self.kubelets[name].follow()
            self.schedulers[name].follow()

        for agent in self.agents.values():
            agent.start()

        for job in self.jobs.values():
            self.sources[job.source].later(job.at, lambda job=job: self.create(job))

    def _begin_claims(self) -> None:
        """Have devices be claimed, in all clusters."""
        for source in self.sources.values():
            device_claims.prepare_source_claims(source)

        for name in self.nodes:
            device_claims.prepare_target_class(self.clusters[name])
            amounts = {f"{name}-{n}": count for n, count in enumerate(self.claimable[name])}
            self.schedulers[name].claims = ClaimAllocator(self.clusters[name], amounts)

        for cluster in self.clusters.values():
            ClaimController(cluster).follow()

        self.claims.follow()

    def create(self, job: GangJob) -> None:
        """Make all pods of a job."""
        for number in range(job.count):
            minimum = job.minimums[number] if job.minimums else str(job.minimum)
            if not job.every:
                self.make(job, minimum)
                continue

            later = number * job.every
            self.sources[job.source].later(later, lambda said=minimum: self.make(job, said))

    def make(self, job: GangJob, minimum: str) -> None:
        """Make one pod."""
        number = self._made[job.name] = self._made.get(job.name, -1) + 1
        is_last = number == job.count - 1
        runs = job.last_runs if is_last and job.last_runs else job.runs
        workload = SimulatedWorkload(
            job.name,
            job.owner,
            0.0,
            cpu=job.cpu,
            devices=job.devices if number else 0,
            runs=runs,
            farewell=0.5,
        )
        manifest = pod(workload, f"{job.name}-{number}")
        manifest["metadata"]["annotations"] |= {keys.GANG: job.name, keys.GANG_MINIMUM: minimum}
        if job.claims:
            manifest = device_claims.with_claim(manifest, shared=job.claims == "shared")

        if job.group:
            manifest["metadata"]["labels"][kept_together.LABELS[0]] = job.group

        proxy = admitted(manifest, list(self.nodes), None)
        self.sources[job.source].writer.create(kinds.PODS, proxy, NAMESPACE)

    def _on_change(self, kind: Kind, change: Change) -> None:
        """Make a pod anew that is gone before it has finished."""
        old = change.old
        if kind is not kinds.PODS or change.new is not None or old is None:
            return

        job = self.jobs.get(objects.labels(old).get("app", ""))
        if job is not None and not objects.is_finished(old):
            self.sources[job.source].soon(lambda: self.make(job, str(job.minimum)))

    def delete(self, pod: Object) -> None:
        """Delete a pod of the source."""
        self.sources[SOURCE].writer.delete(kinds.PODS, objects.key(pod), {})

    def pods_of(self, name: str) -> Objects:
        """Return the proxies of a gang."""
        pods = self.sources[self.jobs[name].source].pods()
        return [p for p in pods if objects.labels(p).get("app") == name]

    def running(self, name: str) -> int:
        """Count the pods of a gang that run."""
        return sum(
            1
            for nodes in self.kubelets.values()
            for key in nodes.running.values()
            if f"/{name}-" in key
        )

    def messages(self, name: str) -> set[str]:
        """Return what the pods of a gang say of why they wait."""
        conditions = (objects.condition(p, "PodScheduled") or {} for p in self.pods_of(name))
        return {str(c.get("message")) for c in conditions if c.get("status") == "False"}

    def take(self, target: str, cpu: int, seconds: float) -> None:
        """Have a pod of the target itself take some of its room, for so long."""
        cluster = self.clusters[target]
        workload = SimulatedWorkload("own", WorkloadOwner.USER, 0.0, cpu=cpu)
        body = pod(workload, "own")
        made = cluster.writer.create(kinds.PODS, body, NAMESPACE)
        cluster.later(
            seconds,
            lambda: self.kubelets[target]._delete(objects.key(made), objects.uid(made), 0),
        )


def run(world: GangWorld, seconds: float, *, kills: Sequence[AgentKill] = ()) -> None:
    """Let so many seconds pass."""
    random.seed(1)
    with patch.object(registry, "installed", list), patch.object(kubelet, "_REJECTED", 0.0):
        loop.run(_run(world, seconds, kills))


async def _run(world: GangWorld, seconds: float, kills: Sequence[AgentKill]) -> None:
    world.begin()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(world.watcher.run())
        for kill in kills:
            group.create_task(_kill(world, kill))

        await asyncio.sleep(seconds)
        watching.cancel()

    for agent in world.agents.values():
        failure = agent.failure()
        await agent.kill()
        if failure is not None:
            raise failure


async def _kill(world: GangWorld, kill: AgentKill) -> None:
    await asyncio.sleep(kill.at)
    await world.agents[kill.cluster].kill()
    await asyncio.sleep(kill.seconds)
    world.agents[kill.cluster].start()
