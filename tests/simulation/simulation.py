"""Runs one schedule to its end, and says what was wrong."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from tests.faults.snapshot import Violation, phase
from tests.simulation import invariants, loop
from tests.simulation.actions import Users
from tests.simulation.administrators import Administrators
from tests.simulation.agents import SimulatedAgent, streams_between
from tests.simulation.clusters import SimulatedCluster, prepare_source, prepare_target
from tests.simulation.faults import FaultInjector
from tests.simulation.form_rules import FormRules
from tests.simulation.gang_schedules import GangSchedule
from tests.simulation.invariants import Everything
from tests.simulation.kube_scheduler import CandidateScheduler
from tests.simulation.kubelet import PodSimulator
from tests.simulation.monitor import Monitor
from tests.simulation.move_rules import MoveRules
from tests.simulation.owners import Controllers
from tests.simulation.placement_rules import PlacementRules
from tests.simulation.schedule import SOURCE, SPAN, Schedule, WorkloadOwner
from vnode.api import objects
from vnode.scheduling import registry
from vnode.telemetry import audit

_HOUR: Final = 3600.0
_REST: Final = 480.0
"""Seconds without a move after which none is due: there must have been room for 300 of them before
pods go back, and then the workload is looked at within a minute, and its placeholders are."""
_LOOK: Final = 5.0  # seconds between looks at whether things have settled
PATIENCE: Final = 1000.0
"""Seconds that things may take to settle: longer than anybody waits to try something again, and
than a moved pod waits for its replacement."""


@dataclass(frozen=True, slots=True)
class ScheduleResult:
    """What came of one schedule; `trace` is empty unless asked for."""

    schedule: Schedule | GangSchedule
    violations: tuple[Violation, ...]
    pods: int
    delegates: int
    requests: int
    moves: int
    seconds: float
    trace: tuple[str, ...] = ()


class _Faults(logging.Handler):
    """Collects what vnode logs as an error: exceptions that nobody expected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[Violation] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take one."""
        error = record.exc_info[1] if record.exc_info else None
        self.add(f"{record.getMessage()}: {error!r}" if error else record.getMessage())

    def add(self, text: str) -> None:
        """Note one."""
        self.found.append(Violation("nothing unexpected is raised", text))


class Simulation:
    """A source and its targets, and everybody in them."""

    def __init__(self, schedule: Schedule, *, traced: bool) -> None:
        self.schedule = schedule
        dice = random.Random(schedule.seed)
        self.clusters = {
            name: SimulatedCluster(name, random.Random(dice.random()), schedule.latency)
            for name in schedule.clusters
        }
        self.source = self.clusters[SOURCE]
        self.targets = {name: self.clusters[name] for name in schedule.nodes}
        servers = {name: cluster.server for name, cluster in self.targets.items()}
        self.streams = streams_between(self.targets, lambda name: self.agents[name])
        self.agents = {
            name: SimulatedAgent(
                cluster, servers if name == SOURCE else {}, schedule.parallel, self.streams
            )
            for name, cluster in self.clusters.items()
        }
        self.kubelets = {name: PodSimulator(c) for name, c in self.targets.items()}
        self.schedulers = {
            name: CandidateScheduler(c, self.agents[name]) for name, c in self.targets.items()
        }
        self.owners = Controllers(self.source, tuple(self.targets), schedule.policies.failover)
        self.monitor = Monitor(
            self.source,
            self.targets,
            self.kubelets,
            schedule.all_is_well,
            FormRules(schedule.latency, schedule.all_is_well),
            [] if traced else None,
        )
        self.users = Users(self.source, self.targets, self.owners, self.monitor.note)
        self.administrators = Administrators(self.source, self.targets, self.monitor.note)
        self.injector = FaultInjector(
            self.clusters, self.agents, random.Random(dice.random()), self.streams
        )
        self.placement = PlacementRules(self.source, self.targets, schedule)
        self.moves = MoveRules(self.source, self.targets, self.owners, schedule)
        self.everything = Everything(
            self.source,
            self.targets,
            self.schedulers,
            self.owners,
            self.placement,
            self.monitor.results,
            refuses=any((f.cluster, f.status) == (SOURCE, 403) for f in schedule.faults),
            all_is_well=schedule.all_is_well,
        )

    async def run(self) -> list[Violation]:
        """Run the schedule, let things settle, remove everything, and let that settle."""
        self._begin()
        self.administrators.follow(self.schedule.policies)
        self.administrators.override(self.schedule.overrides)
        for workload in self.schedule.workloads:
            self.source.later(workload.at, lambda w=workload: self.owners.create(w))

        for action in self.schedule.actions:
            self.source.later(action.at, lambda a=action: self.users.act(a))

        for rollout in self.schedule.policies.rollouts:
            self.source.later(rollout.at, self._roll_out)

        async with asyncio.TaskGroup() as group:
            for fault in self.schedule.faults:
                group.create_task(self.injector.cause(fault), name=str(fault))

        loop_time = asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, SPAN - loop_time))
        self.monitor.note("---- all is well again")
        found = await self._settle(lambda: invariants.violations(self.everything))
        found = found or await self._shrink()
        found = found or await self._last_rollouts()
        found = found or await self._rest()
        if not found:
            self.monitor.note("---- remove everything")
            for name in list(self.owners.wanted):
                self.owners.remove(name)

            found = await self._settle(lambda: invariants.left_over(self.everything))

        for agent in self.agents.values():
            await agent.kill()

        return found

    def _begin(self) -> None:
        prepare_source(self.source, list(self.targets))
        for name, cluster in self.targets.items():
            prepare_target(cluster, self.schedule.nodes[name])
            self.kubelets[name].follow()
            self.schedulers[name].follow()

        self.owners.follow()
        self.monitor.follow()
        self.placement.follow()
        self.moves.follow()
        for agent in self.agents.values():
            agent.start()

    async def _shrink(self) -> list[Violation]:
        """Have Deployments lose half of their pods, and let that settle.

        Not where pods wait, here or in a target: a ReplicaSet deletes these first, whatever is
        planned for the others.
        """
        if not self.schedule.policies.shrinks:
            return []

        self.monitor.note("---- Deployments shrink")
        for name, workload in self.owners.wanted.items():
            all_run = all(phase(pod) == "Running" for pod in self.owners.pods_of(name))
            if workload.owner is WorkloadOwner.REPLICA_SET and all_run:
                self.owners.shrink(name)

        return await self._settle(lambda: invariants.violations(self.everything))

    async def _last_rollouts(self) -> list[Violation]:
        """Roll out Deployments, once all is at rest or before it is again, and let that settle."""
        if not self.schedule.policies.last_rollouts:
            return []

        for _ in range(self.schedule.policies.last_rollouts):
            self._roll_out()
            await asyncio.sleep(_LOOK)

        return await self._settle(lambda: invariants.violations(self.everything))

    def _roll_out(self) -> None:
        self.monitor.note("---- Deployments are rolled out")
        for name in self.owners.deployments():
            self.owners.roll_out(name)

    def _cordoned_for(self) -> float:
        """Return for how many seconds a virtual node is still cordoned."""
        ends = (each.at + each.seconds for each in self.schedule.policies.cordons)
        return max(ends, default=0.0) - asyncio.get_running_loop().time()

    async def _rest(self) -> list[Violation]:
        """Let an hour pass in which nobody does anything, and nothing may be moved."""
        if not self.schedule.policies.steady:
            return []

        if (left := self._cordoned_for()) > 0:  # who waited for it goes there, and rollouts go on
            await asyncio.sleep(left)
            if found := await self._settle(lambda: invariants.violations(self.everything)):
                return found

        before: dict[str, object] = {}
        known = {objects.uid(pod) for pod in self.source.pods()}
        # At worst they go back one by one, and never again.
        for _ in range(len(self.source.pods()) + 2):
            last, before = before, self.placement.resting()
            if last == before:
                break

            await asyncio.sleep(_REST)
        else:
            return [Violation("moves come to rest", "not within the moves that there could be")]

        if in_vain := self.placement.moved_in_vain(known):
            return [Violation("pods that go back arrive", each) for each in in_vain]

        self.monitor.note("---- an hour of steady load")
        await asyncio.sleep(_HOUR)
        after = self.placement.resting()
        return [
            Violation("an hour of steady load moves nothing", f"{name}: {old} became {new}")
            for name in sorted(before.keys() | after.keys())
            if (old := before.get(name)) != (new := after.get(name))
        ]

    async def _settle(self, look: Callable[[], list[Violation]]) -> list[Violation]:
        """Wait until nothing is wrong, or until it is too late; what was wrong, ever or then."""
        clock = asyncio.get_running_loop()
        late = clock.time() + PATIENCE
        while True:
            await asyncio.sleep(_LOOK)
            for name, agent in self.agents.items():
                if (failure := agent.failure()) is not None:
                    return [Violation("agents never end by themselves", f"{name}: {failure!r}")]

            if wrong := [
                *self.monitor.history.violations,
                *self.placement.violations,
                *self.moves.violations,
            ]:
                return wrong

            found = look()
            if not found or clock.time() > late:
                return found


def simulate(schedule: Schedule, *, traced: bool = False) -> ScheduleResult:
    """Run one schedule; the same one always takes the same course, in one version of Python."""
    random.seed(schedule.seed)  # vnode's own jitter
    faults = _Faults()
    logger, audited = logging.getLogger("vnode"), logging.getLogger(audit.NAME)
    logger.addHandler(faults)
    propagates, logger.propagate = logger.propagate, False
    audited.setLevel(logging.INFO)  # what is done on behalf of nobody known is an error
    try:
        with patch.object(registry, "installed", list):  # which reads the disk
            return loop.run(_simulate(schedule, faults, traced))
    finally:
        logger.removeHandler(faults)
        logger.propagate = propagates
        audited.setLevel(audit.OFF)


async def _simulate(schedule: Schedule, faults: _Faults, traced: bool) -> ScheduleResult:
    def handle(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        faults.add(f"{context.get('message')}: {context.get('exception')!r}")

    running = asyncio.get_running_loop()
    running.set_exception_handler(handle)
    simulation = Simulation(schedule, traced=traced)
    found = await simulation.run()
    return ScheduleResult(
        schedule,
        (*faults.found, *found),
        len(simulation.owners.made),
        simulation.monitor.history.delegates,
        sum(len(cluster.server.requests) for cluster in simulation.clusters.values()),
        simulation.moves.moves,
        running.time(),
        tuple(simulation.monitor.trace or ()),
    )
