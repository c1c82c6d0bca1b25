"""Schedules of gangs, drawn from a seed: of two sources, with devices, and agents that are killed.

Some claim their devices, each pod one of its own, or all pods of such gangs the same.

`make simulation` runs one now and then: each takes as long as fifty others, and they have nothing
of these, so that what is found is about gangs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.faults.snapshot import Violation
from tests.simulation.gang_world import AgentKill, ClaimedBy, GangJob, GangWorld, run
from tests.simulation.schedule import SOURCE, WorkloadOwner
from vnode.api import objects

EVERY: Final = 100
"""Of so many seeds one is that of a schedule of gangs."""

_OTHER_SOURCE: Final = "c9"
_CLAIMS: Final[Sequence[ClaimedBy]] = ("", "", "own", "shared")
_SECONDS: Final = 300.0  # in which all gangs have to start, and to end


@dataclass(frozen=True, slots=True)
class GangSchedule:
    """What happens; `nodes` and `devices` have the CPUs and devices of nodes, by target."""

    seed: int
    latency: float
    nodes: dict[str, tuple[int, ...]]
    devices: dict[str, tuple[int, ...]]
    claimable: dict[str, tuple[int, ...]]
    jobs: tuple[GangJob, ...]
    kills: tuple[AgentKill, ...]

    def lines(self) -> list[str]:
        """Describe it."""
        head = [
            f"gangs, latency {self.latency:g}",
            f"nodes {self.nodes}, devices {self.devices}",
            f"by claim {self.claimable}",
        ]
        return [*head, *map(str, self.jobs), *map(str, self.kills)]


def is_one(seed: int) -> bool:
    """Tell whether a seed is that of a schedule of gangs."""
    return seed % EVERY == 0


def draw(seed: int) -> GangSchedule:
    """Draw one; each gang fits one of the targets, if no other is there."""
    dice, of_claims = random.Random(f"gangs {seed}"), random.Random(f"claims {seed}")

    def claimed(job: GangJob) -> GangJob:
        # A claim that pods share is of one source, and of one node: all of them have to fit there.
        claims: ClaimedBy = of_claims.choice(_CLAIMS)
        may_share = job.source == SOURCE and not job.devices and job.count < 4
        return replace(job, claims="own" if claims == "shared" and not may_share else claims)

    jobs = [_job(dice, number) for number in range(dice.randint(2, 7))]
    sources = sorted({job.source for job in jobs})
    dice.shuffle(sources)
    kills = (
        AgentKill(source, dice.uniform(0.5, 8.0), dice.uniform(0.2, 2.0))
        for source in sources[: dice.randint(0, 2)]
    )
    return GangSchedule(
        seed,
        dice.choice((0.001, 0.02, 0.08)),
        {"c2": (6, 3, 4), "c3": (3, 3, 3)},
        {"c2": (4, 2, 1), "c3": (2, 2, 2)},
        {"c2": (2, 2, 1), "c3": (2, 2, 2)},
        tuple(map(claimed, jobs)),
        tuple(kills),
    )


def _job(dice: random.Random, number: int) -> GangJob:
    count = dice.choice((1, 2, 3, 4))
    job = GangJob(f"g{number}x", count, count, dice.uniform(0, 5), dice.choice((3.0, 8.0, 12.0)))
    return replace(
        job,
        minimum=dice.choice((count, count, max(1, count - 1))),
        devices=dice.choice((0, 1, 1, 2)),
        source=dice.choice((SOURCE, SOURCE, _OTHER_SOURCE)),
        owner=WorkloadOwner.STATEFUL_SET,  # any controller
    )


def simulate(schedule: GangSchedule) -> tuple[GangWorld, tuple[Violation, ...]]:
    """Let it happen; return what is left, and what was wrong."""
    world = GangWorld(
        schedule.nodes,
        schedule.jobs,
        schedule.seed,
        schedule.latency,
        schedule.devices,
        schedule.claimable,
    )
    run(world, _SECONDS, kills=schedule.kills)
    return world, tuple(_violations(world))


def _violations(world: GangWorld) -> Iterator[Violation]:
    yield from world.claims.left()
    for what in world.watcher.wrong:
        yield Violation("gangs start together", what)

    for name in world.jobs:
        if name not in world.watcher.started:
            yield Violation("every gang that fits starts", f"{name}: {world.messages(name)}")

        if apart := world.watcher.apart.get(name):  # one left over may run where others did not
            yield Violation("a gang runs in one target", f"{name} ran in {sorted(apart)}")

        for pod in world.pods_of(name):
            if not objects.is_finished(pod):
                what = f"{objects.name(pod)}: {objects.status(pod)}"
                yield Violation("every pod of a gang ends", what)
