"""`hack/bench-scale`: an agent with 10,000 pods on four targets, and then with 96 targets more.

Starts a source and four targets, measures, and takes them down again, also after Ctrl-C: what the
agents cost when nothing happens, how long a change in a target takes to be seen in the source, and
a restart of the source's agent. The many Targets share the clusters by namespace.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from hack.fleetlib import clusters, progress
from hack.fleetlib.fleet import FleetOptions, LocalFleet
from hack.fleetlib.kwok import NodeSize
from tests.bench import results, running, scale_crowd, scale_probes, sequence
from tests.bench.fleet import measured_fleet
from tests.bench.phases import SOURCE, MeasuredFleet
from tests.bench.scale_figures import Lag, Rest, Restart, ScaleRun, text
from vnode import __version__

_SINGLES, _MANY, _AT_ONCE = 30, 300, 32  # delegates whose status changes
_PODS_A_NODE = 250
_ROOM = 1.25  # times as many pods as fit, for scores that prefer one target


def parser() -> argparse.ArgumentParser:
    """Return the options; there is no need for any."""
    found = results.parser("hack/bench-scale", __doc__, "scale-")
    found.add_argument("--clusters", type=int, default=4, help="targets, each a cluster (4)")
    found.add_argument("--pods", type=int, default=10000, help="on these targets (10000)")
    found.add_argument("--targets", type=int, default=96, help="more, in the same clusters (96)")
    found.add_argument("--each", type=int, default=4, help="pods on each of these (4)")
    found.add_argument("--rest", type=float, default=60, help="seconds of each rest (60)")
    found.add_argument(
        "--fleet", type=Path, metavar="DIR", help="use this running fleet, and leave it running"
    )
    return found


def _fleet(options: argparse.Namespace) -> FleetOptions:
    more = options.targets * options.each
    nodes = math.ceil(_ROOM * (options.pods + more) / options.clusters / _PODS_A_NODE) + 1
    return FleetOptions(
        (SOURCE, *_targets(options)),
        clusters.ControlPlaneOptions(nodes=nodes, size=NodeSize(pods=str(_PODS_A_NODE))),
        agents=True,
        connections=[(SOURCE, target) for target in _targets(options)],
    )


def _targets(options: argparse.Namespace) -> tuple[str, ...]:
    return tuple(f"c{number + 2}" for number in range(options.clusters))


async def measure(fleet: LocalFleet, options: argparse.Namespace) -> ScaleRun:
    """Make all measurements of the benchmark, one after the other."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    rests: list[Rest] = []
    lags: list[Lag] = []
    restarts: list[Restart] = []
    async with AsyncExitStack() as stack:
        there = _targets(options)
        opened = {
            name: await stack.enter_async_context(sequence.client(fleet, name))
            for name in (SOURCE, *there)
        }
        stage = MeasuredFleet(fleet, opened, {}, there)
        version = await opened[SOURCE].request("GET", "/version")
        await sequence.elect(opened[SOURCE])
        progress.say(f"{options.pods} pods ...")
        uids, created = await scale_crowd.pods(stage, options.pods)
        what = f"{options.pods} pods"
        progress.say(f"they ran after {created:.1f} s; at rest ...")
        rests.append(await scale_probes.rest(stage, what, options.rest))
        progress.say("changes ...")
        lags.append(await scale_probes.lag(stage, "one at a time", uids[:_SINGLES], 1))
        many = uids[_SINGLES : _SINGLES + _MANY]
        lags.append(await scale_probes.lag(stage, f"{_AT_ONCE} at once", many, _AT_ONCE))
        progress.say("restarts ...")
        restarts.append(await scale_probes.restart(stage, what))
        progress.say(f"{options.targets} targets more ...")
        connected = await scale_crowd.targets(stage, options.targets)
        progress.say(f"their nodes were Ready after {connected:.1f} s; at rest ...")
        what = f"{what}, {options.targets} targets more"
        rests.append(await scale_probes.rest(stage, what, options.rest / 2))
        await scale_crowd.small_pods(stage, options.targets, options.each)
        what = f"{options.each} pods on each of these"
        rests.append(await scale_probes.rest(stage, what, options.rest))
        progress.say("restarts ...")
        restarts.append(await scale_probes.restart(stage, f"{options.targets} targets more"))

    return ScaleRun(
        started=started,
        cores=os.cpu_count() or 0,
        python=platform.python_version(),
        vnode=__version__,
        kubernetes=version["gitVersion"],
        pods=options.pods,
        targets=options.targets,
        created=round(created, 1),
        connected=round(connected, 1),
        rests=rests,
        lags=lags,
        restarts=restarts,
    )


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 if something failed, or an aim was missed."""
    options = parser().parse_args(argv)
    return running.run(
        "hack/bench-scale",
        measured_fleet(options.fleet, _fleet(options)),
        lambda measured: measure(measured, options),
        text,
        options.json,
    )


if __name__ == "__main__":
    sys.exit(main())
