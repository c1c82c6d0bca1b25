"""`python -m tests.faults`: breaks a fleet at random, and checks that nothing is lost or doubled.

Starts a fleet of one source and two targets, whose agents reach every API server through a proxy
that can fail. The story goes to stdout. Exits with 1 after a violation, having said which.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import secrets
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.fleetlib import clusters, fleet, progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import FleetOptions, LocalFleet
from tests.faults import harness
from tests.faults.runner import Runner
from tests.faults.snapshot import Violation
from tests.faults.watching import Watcher


def parser() -> argparse.ArgumentParser:
    """Return the options; there is no need for any."""
    found = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    found.add_argument("--seed", type=int, default=None, help="the same seed, the same steps")
    found.add_argument("--minutes", type=float, default=3, help="for how long (3)")
    found.add_argument(
        "--longest", type=float, default=25, help="seconds that a fault takes at most (25)"
    )
    found.add_argument("--replicas", type=int, default=1, help="agents in each cluster (1)")
    found.add_argument("--keep", action="store_true", help="leave the fleet up after a violation")
    found.add_argument(
        "--fleet", type=Path, metavar="DIR", help="use this fleet of c1, c2, c3 with agents"
    )
    return found


@contextmanager
def lent_fleet(arguments: argparse.Namespace) -> Iterator[LocalFleet]:
    """Yield the fleet that was named, or else one that is taken down at the end."""
    if arguments.fleet is not None:
        yield LocalFleet(arguments.fleet.resolve())
        return

    options = FleetOptions(
        names=harness.CLUSTERS,
        clusters=clusters.ControlPlaneOptions(nodes=3),
        agents=True,
        replicas=arguments.replicas,
    )
    folder = Path(tempfile.mkdtemp(prefix="vnode-faults-"))
    started = fleet.up(folder, options)
    try:
        yield started
    except SystemExit as end:
        if arguments.keep and end.code:
            progress.say(f"the fleet stays up: hack/fleet down {folder}")
        else:
            started.down()

        raise
    except BaseException:
        started.down()
        raise
    else:
        started.down()


async def run(arguments: argparse.Namespace, there: LocalFleet) -> list[Violation]:
    """Return one run, told as it goes on."""
    seed = arguments.seed if arguments.seed is not None else secrets.randbelow(1_000_000)
    dice = random.Random(seed)
    say(f"seed {seed}: python -m tests.faults --seed {seed} --minutes {arguments.minutes:g}")
    async with harness.running(there, dice) as one, asyncio.TaskGroup() as group:
        watcher = Watcher(one)
        watching = group.create_task(watcher.run(), name="watch")
        await watcher.synced()
        own = ("hostile", "policies", "replaced", "cloud", "cleaning")
        others = (random.Random(f"{what} {seed}") for what in own)
        runner = Runner(one, watcher, dice, say, *others)
        found = await runner.begin()
        found = found or await runner.run(arguments.minutes * 60, arguments.longest)
        found = found or await runner.finish()
        watching.cancel()
        _report(runner, watcher, one, seed, found)

    return found


def _report(
    runner: Runner, watcher: Watcher, one: harness.Harness, seed: int, found: list[Violation]
) -> None:
    tally = runner.tally
    say(f"seed {seed}: {tally.steps} steps, {watcher.history.delegates} delegates ran")
    say(f"  actions: {_counts(tally.actions)}")
    say(f"  faults: {_counts(tally.faults)}")
    say(f"  hostile: {_counts(runner.hostility.done)}")
    say(f"  placement policies: {_counts(runner.placements.done)}")
    say(f"  replaced targets: {_counts(runner.replacer.done)}")
    say(f"  virtual nodes that a cloud controller deleted: {runner.cloud.deleted}")
    say(f"  finished delegates that were cleaned up: {runner.target_controllers.cleaned}")
    requests = sum(
        (fault_proxy.counts for fault_proxy in one.fault_proxies.values()),
        start=type(tally.faults)(),
    )
    say(f"  requests: {_counts(requests)}")
    if one.ends:
        say(f"  processes that ended by themselves: {_counts(one.ends)}")

    measures = runner.actor.timer.measures
    if measures:
        slowest = max(measures, key=lambda one: one.seconds)
        say(f"  beside a frozen target: {len(measures)} measures, the slowest {slowest}")

    say(f"  indexes that delegates know: {watcher.indexes.checked}")
    gangs = watcher.gangs.started
    if gangs:
        half = max(gang.half for gang in gangs)
        say(f"  gangs: {len(gangs)} started, too few of one ran for {half:.1f} s at most")

    if runner.actor.refused:
        say(f"  evictions that budgets refused for good: {runner.actor.refused}")

    if tally.settled:
        say(f"  settled within {max(tally.settled):.1f} s each time")

    say(f"  violations: {len(found)}")
    for violation in found:
        say(f"  VIOLATION {violation}")


def _counts(counted: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counted.items())) or "none"


def say(text: str) -> None:
    """Print a line on stdout, and flush it."""
    print(text, flush=True)


def main() -> int:
    """Run; the exit code."""
    arguments = parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.getLogger("vnode").setLevel(logging.ERROR)  # of our own watches, which break too
    try:
        with lent_fleet(arguments) as there:
            if asyncio.run(run(arguments, there)):
                sys.exit(1)
    except FleetError as error:
        progress.say(f"faults: {error}")
        return 2

    return 0


if __name__ == "__main__":
    sys.exit(main())
