"""`hack/bench-leader`: how many pods a second one leader can place, if API servers cost nothing.

Runs whole agents against API servers in memory, which have another process, and counts the CPU time
of the agents alone: pods come in crowds, and those of earlier ones stay. The leader is one process
with one event loop, so a core is all that it can use. Nothing has to be installed or taken down.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from hack.fleetlib import progress
from tests.bench import accounts, memory_pods, results
from tests.bench.report import grid
from tests.fuzz.environment import TENANT, FuzzEnvironment
from vnode import __version__

_AT_ONCE: Final = 32  # pods that are created
_PATIENCE: Final = 900.0  # seconds until all of a crowd run
_REST: Final = 10.0  # seconds without anything to do


class PodCrowd(msgspec.Struct, frozen=True):
    """Pods that came at once: milliseconds of CPU of each agent for one of them."""

    pods: int
    before: int  # that ran already
    seconds: float
    source: float
    target: float
    rss: float  # MiB of the source's agent
    idle: float  # of a core, that the source's agent takes once all run

    @property
    def most(self) -> float:
        """Pods a second for which the source's agent needs a whole core."""
        return 1000 / self.source


class LeaderRun(msgspec.Struct, frozen=True):
    """All that was measured."""

    started: str
    cores: int
    python: str
    vnode: str
    crowds: list[PodCrowd]


def parser() -> argparse.ArgumentParser:
    """Return the options; there is no need for any."""
    found = results.parser("hack/bench-leader", __doc__, "leader-")
    found.add_argument(
        "--crowds",
        type=results.sizes,
        default=(300, 1000, 2000, 300),
        metavar="PODS,...",
        help="one after the other; all stay (300,1000,2000,300)",
    )
    return found


async def measured(folder: Path, sizes: Iterable[int]) -> list[PodCrowd]:
    """Have crowds of pods run, one after the other, with agents of their own."""
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    env = FuzzEnvironment(folder, random.Random())
    found: list[PodCrowd] = []
    async with env.running():
        for size in sizes:
            progress.say(f"{size} pods ...")
            found.append(await _crowd(env, size, sum(crowd.pods for crowd in found)))

    return found


async def _crowd(env: FuzzEnvironment, size: int, there: int) -> PodCrowd:
    source, target = (env.agents[name].pid for name in ("source", "honest"))
    env.forget_past()
    begun = time.monotonic()
    before = accounts.usage(source), accounts.usage(target)
    pods = [memory_pods.lasting(f"pod-{there + number}", TENANT) for number in range(size)]
    await memory_pods.start(env, pods, at_once=_AT_ONCE, patience=_PATIENCE)
    took = time.monotonic() - begun
    after = accounts.usage(source), accounts.usage(target)
    await asyncio.sleep(_REST)
    idle = (accounts.usage(source).cpu - after[0].cpu) / _REST
    return PodCrowd(
        size,
        there,
        round(took, 1),
        source=round(1000 * (after[0].cpu - before[0].cpu) / size, 2),
        target=round(1000 * (after[1].cpu - before[1].cpu) / size, 2),
        rss=after[0].rss,
        idle=round(idle, 4),
    )


def text(run: LeaderRun) -> str:
    """Return all that is worth reading of a run."""
    head = ("pods", "before", "seconds", "source ms", "target ms", "pods/s a core", "MiB", "idle")
    rows = [
        [
            str(one.pods),
            str(one.before),
            f"{one.seconds:.1f}",
            f"{one.source:.1f}",
            f"{one.target:.1f}",
            f"{one.most:.0f}",
            f"{one.rss:.0f}",
            f"{one.idle:.2%}",
        ]
        for one in run.crowds
    ]
    machine = f"vnode {run.vnode}, Python {run.python}, {run.cores} cores, {run.started}"
    return (
        f"{machine}\n\nCPU of the agents for a pod, API servers not counted\n\n{grid(head, rows)}"
    )


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    options = parser().parse_args(argv)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        with tempfile.TemporaryDirectory(prefix="vnode-bench-") as folder:
            crowds = asyncio.run(measured(Path(folder), options.crowds))
    except KeyboardInterrupt:
        return 130

    python = platform.python_version()
    run = LeaderRun(started, os.cpu_count() or 0, python, __version__, crowds)
    results.save(run, text(run), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
