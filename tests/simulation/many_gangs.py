"""Many gangs at once, in targets with room for two each and half of a third: the trap for gangs.

Sixteen pods a gang and twenty gangs, in three targets of forty places (`make many-gangs`), or fewer
of the same shape, which `make unit` has. A gang that takes what is over in each target starts
nothing and keeps others out. So none may run in part, each has to start about when it would if
somebody let gangs in one by one, and all have to be done about as soon.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tests.faults.snapshot import Violation
from tests.simulation.gang_world import AgentKill, GangJob, GangWorld, run
from tests.simulation.schedule import SOURCE, WorkloadOwner

RUNS: Final = 30.0
"""Seconds for which each gang runs."""
LATE: Final = 20.0
"""Seconds by which a gang may start later than its turn."""
LONGER: Final = 1.1
"""By what factor all may take longer than one by one."""
_ARRIVING: Final = 2.0  # seconds in which all are created
_TARGETS: Final = ("c2", "c3", "c4")
_STARTING: Final = 2.0  # seconds that the pods of a gang take to start and to end, each turn


@dataclass(frozen=True, slots=True)
class ManyGangs:
    """So many gangs of that size; each target has room for two, and half of one over."""

    count: int
    size: int
    seed: int
    kills: int = 0
    """How often the source's agent is killed."""

    @property
    def turns(self) -> int:
        """How many times all targets are filled, one after the other."""
        return -(-self.count // (2 * len(_TARGETS)))

    @property
    def serial(self) -> float:
        """Seconds that all take if they are let in one by one."""
        return _ARRIVING + self.turns * (RUNS + _STARTING)

    def turn(self, place: int) -> float:
        """Return when the gang at that place of the order would start then."""
        return _ARRIVING + place // (2 * len(_TARGETS)) * (RUNS + _STARTING)


FULL: Final = (20, 16)


def simulate(gangs: ManyGangs) -> tuple[GangWorld, tuple[Violation, ...]]:
    """Let it happen; return what is left, and what was wrong."""
    dice = random.Random(f"many gangs {gangs.seed}")
    owner = WorkloadOwner.STATEFUL_SET  # any controller
    jobs = [
        GangJob(
            f"g{number}x",
            *(gangs.size, gangs.size, dice.uniform(0, _ARRIVING)),
            runs=RUNS,
            owner=owner,
        )
        for number in range(gangs.count)
    ]
    half = gangs.size // 2
    world = GangWorld(dict.fromkeys(_TARGETS, (half,) * 5), jobs, gangs.seed, 0.005)
    kills = [
        AgentKill(SOURCE, dice.uniform(1, gangs.serial - RUNS), dice.uniform(1, 5))
        for _ in range(gangs.kills)
    ]
    run(world, gangs.serial * LONGER, kills=_apart(kills))
    return world, tuple(_violations(gangs, world))


def _apart(kills: Sequence[AgentKill]) -> list[AgentKill]:
    """Leave out what comes while the agent is down from the one before."""
    kept: list[AgentKill] = []
    for kill in sorted(kills, key=lambda each: each.at):
        if not kept or kill.at > kept[-1].at + kept[-1].seconds:
            kept.append(kill)

    return kept


def _violations(gangs: ManyGangs, world: GangWorld) -> Iterator[Violation]:
    for what in world.watcher.wrong:
        yield Violation("gangs start together", what)

    started = sorted(world.watcher.started.items(), key=lambda item: item[1])
    for place, (name, at) in enumerate(started):
        if at > gangs.turn(place) + LATE:
            what = f"{name} starts at {at:.0f} s, and its turn is at {gangs.turn(place):.0f} s"
            yield Violation("a gang starts when its turn comes", what)

    for name in world.jobs:
        if apart := world.watcher.apart.get(name):
            yield Violation("a gang runs in one target", f"{name} ran in {sorted(apart)}")

        if name not in world.watcher.started or world.running(name):
            what = f"{name} has not ended at {gangs.serial * LONGER:.0f} s"
            yield Violation("all are done as soon as one by one", what)


def main(argv: list[str] | None = None) -> int:
    """Run the full size, with and without kills; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.many_gangs")
    parser.add_argument("--seed", type=int, action="append", help="repeatable; 1 if there is none")
    wrong = False
    for seed in parser.parse_args(argv).seed or [1]:
        for kills in (0, 5):
            world, violations = simulate(ManyGangs(*FULL, seed, kills))
            starts = sorted(round(at) for at in world.watcher.started.values())
            print(f"seed {seed}, {kills} kills: {len(starts)} started, at {starts}")
            for violation in violations:
                print(f"  {violation}")

            wrong |= bool(violations)

    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
