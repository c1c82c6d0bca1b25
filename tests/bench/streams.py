"""`hack/bench-streams`: exec, copies and logs through a virtual node, beside the target itself.

Starts a source, and a target with a real node (root), measures, and takes both down again, also
after Ctrl-C. Everything is measured straight to the target as well, in the same run, and only the
ratio is worth much: all of both clusters shares this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hack.fleetlib import agents, progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet
from hack.fleetlib.tools import catalogue
from tests import kit
from tests.bench import accounts, copying, load, results
from tests.bench.copying import IN, OUT, MeasuredProcess, Ways
from tests.bench.figures import quantiles
from tests.bench.fleet import REAL_NODE, measured_fleet
from tests.bench.load import Way
from tests.bench.stream_figures import Crowd, StreamsRun, text
from tests.realnode.cluster import SOURCE, TARGET, NodeCluster
from vnode import __version__

_POD = "bench"
_COUNTING = "n=0; while :; do n=$((n+1)); echo $n; usleep 200000; done"


def parser() -> argparse.ArgumentParser:
    """Return the options; there is no need for any."""
    found = results.parser("hack/bench-streams", __doc__, "streams-")
    found.add_argument("--mib", type=int, default=1024, help="of one copy (1024)")
    found.add_argument("--rounds", type=int, default=2, help="copies each way (2)")
    found.add_argument("--commands", type=int, default=40, help="of exec true, each way (40)")
    found.add_argument("--crowd", type=int, default=100, help="sessions, and followers (100)")
    found.add_argument(
        "--fleet", type=Path, metavar="DIR", help="use this running fleet, and leave it running"
    )
    return found


@contextmanager
def pod(measured: LocalFleet) -> Iterator[Ways]:
    """Yield the pod that everything is measured with; it counts, five lines a second."""
    commands = kit.Fleet(measured.directory)
    source, target = NodeCluster(commands, SOURCE), NodeCluster(commands, TARGET)
    commands.opt_in(SOURCE)
    source.start(_POD, _COUNTING)
    try:
        yield Ways(target, target.delegate_of(source.get("pod", _POD)), source, _POD)
    finally:
        source.remove(_POD)


def measure(measured: LocalFleet, options: argparse.Namespace) -> StreamsRun:
    """Make all measurements of the benchmark, one after the other."""
    started, busy = datetime.now(UTC).isoformat(timespec="seconds"), _busy(measured)
    process = measured.state().process(SOURCE, agents.AGENT).identity
    assert process is not None
    agent = MeasuredProcess(process.pid)
    with pod(measured) as ways:
        progress.say("short commands ...")
        latency = copying.latency(ways, options.commands)
        copies = [
            copying.copies(ways, agent, direction, options.mib, options.rounds)
            for direction in (OUT, IN)
        ]
        progress.say("many at once ...")
        met = [
            asyncio.run(_crowd(what, ways, agent, options.crowd, straight=straight))
            for what in ("exec sessions", "log followers")
            for straight in (True, False)
        ]
    return StreamsRun(
        started=started,
        cores=os.cpu_count() or 0,
        python=platform.python_version(),
        vnode=__version__,
        kubernetes=catalogue.KUBERNETES,
        busy=busy,
        copies=copies,
        latency=latency,
        crowds=met,
    )


def _busy(measured: LocalFleet, seconds: float = 3.0) -> float:
    """Measure how many cores the programs take that are neither the fleet's nor this one."""
    before = accounts.work(measured)
    time.sleep(seconds)
    return round(accounts.work(measured).others(before) / seconds, 2)


async def _crowd(
    what: str, ways: Ways, agent: MeasuredProcess, count: int, *, straight: bool
) -> Crowd:
    cluster, name = ways.both[0 if straight else 1]
    way = Way(cluster.fleet.kubeconfig(cluster.name), name)
    meet = load.sessions if what == "exec sessions" else load.followers
    outcome = await meet(way, count)
    return Crowd(
        what,
        straight,
        count,
        outcome.served,
        round(outcome.opened, 3),
        quantiles(outcome.lags),
        agent.rss(),
    )


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 if something failed, or somebody in a crowd was not served."""
    options = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # take down what was started
    try:
        with measured_fleet(options.fleet, REAL_NODE) as measured:
            run = measure(measured, options)
    except (FleetError, AssertionError, TimeoutError) as error:
        progress.say(f"hack/bench-streams: {error or 'timed out'}")
        return 1
    except KeyboardInterrupt:
        return 130

    results.save(run, text(run), options.json)
    return 0 if all(one.served == one.wanted for one in run.crowds) else 1


if __name__ == "__main__":
    sys.exit(main())
