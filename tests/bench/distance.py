"""`hack/bench-distance`: pods, logs and exec with targets that are far away.

Starts a source and two targets, connects them by lines that delay each byte, measures with no
delay, with one, and again with none, and takes all down again, also after Ctrl-C. The agents of the
targets are near their API servers, as they are where somebody runs them.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hack.fleetlib import addresses, clusters, progress
from hack.fleetlib.fleet import FleetOptions, LocalFleet
from tests import kit
from tests.bench import delay_line, load, phases, report, results, running, sequence
from tests.bench.delay_line import FarServer
from tests.bench.distance_figures import DistanceRun, Stream, text
from tests.bench.figures import VNODE, Phase, quantiles
from tests.bench.fleet import measured_fleet
from tests.bench.load import Way
from tests.bench.phases import SOURCE, TARGETS, MeasuredFleet, Order
from tests.bench.sequence import CLUSTERS
from tests.bench.tracking import NAMESPACE
from tests.faults import harness
from vnode import __version__
from vnode.api import kinds, names, objects

_SINGLES: Final = 20
_ROUNDS: Final = 10  # of a log and of a session, each way
_NODES: Final = 20
_WAYS: Final = 2  # there and back


def parser() -> argparse.ArgumentParser:
    """Return the options; there is no need for any."""
    found = results.parser("hack/bench-distance", __doc__, "distance-")
    found.add_argument("--burst", type=int, default=300, help="pods at once (300)")
    found.add_argument(
        "--round-trip", type=float, default=0.1, help="seconds to a far target and back (0.1)"
    )
    return found


def _options() -> FleetOptions:
    return FleetOptions(CLUSTERS, clusters.ControlPlaneOptions(nodes=_NODES), agents=True)


async def measure(fleet: LocalFleet, burst: int, round_trip: float) -> DistanceRun:
    """Make all measurements, one after the other."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    async with AsyncExitStack() as stack:
        opened = {n: await stack.enter_async_context(sequence.client(fleet, n)) for n in CLUSTERS}
        lines = {}
        for target in TARGETS:
            line = delay_line.running(
                fleet.site(target).address,
                addresses.API_SERVER,
                fleet.state().cluster(target).netns,
            )
            lines[target] = await stack.enter_async_context(line)
            await asyncio.to_thread(harness.connect, fleet, target, lines[target].url)

        nodes = {names.virtual_node(NAMESPACE, target) for target in TARGETS}
        await kit.until(
            *(opened[SOURCE], kinds.NODES),
            lambda found: all(kit.is_ready(found.get(name, {})) for name in nodes),
        )
        stage = MeasuredFleet(fleet, opened, await sequence.idle(opened))
        version = await opened[SOURCE].request("GET", "/version")
        near = await _phases(stage, burst)
        _set_delay(lines, round_trip / _WAYS)
        far = await _phases(stage, burst)
        streams = await _streams(stage, lines)
        _set_delay(lines, 0.0)
        return DistanceRun(
            started=started,
            cores=os.cpu_count() or 0,
            python=platform.python_version(),
            vnode=__version__,
            kubernetes=version["gitVersion"],
            round_trip=round_trip,
            near=near,
            far=far,
            near_again=await _phases(stage, burst),
            streams=streams,
        )


def _set_delay(lines: dict[str, FarServer], seconds: float) -> None:
    progress.say(f"{seconds * _WAYS * 1000:.0f} ms there and back ...")
    for line in lines.values():
        line.set_delay(seconds)


async def _phases(stage: MeasuredFleet, burst: int) -> list[Phase]:
    done = []
    for order in (Order(VNODE, _SINGLES, burst=False), Order(VNODE, burst)):
        done.append(await phases.run(stage, order))
        progress.say(report.progress(done[-1]))

    return done


async def _streams(stage: MeasuredFleet, lines: dict[str, FarServer]) -> list[Stream]:
    """Run sessions and read logs of one pod, straight from its far target and by the source."""
    progress.say("logs and sessions ...")
    source = stage.clients[SOURCE]
    made = await source.create(kinds.PODS, Order(VNODE, 1).pod("streams"), NAMESPACE)
    pod = await kit.until_one(source, kinds.PODS, "streams", NAMESPACE, kit.is_ready)
    targets = {names.virtual_node(NAMESPACE, target): target for target in TARGETS}
    target = targets[objects.node_name(pod)]
    with TemporaryDirectory() as folder:
        config = Path(folder) / "far"
        config.write_text(stage.fleet.kubeconfig(target).read_text())
        harness.point_at(config, lines[target].url)
        straight = Way(config, names.chaperon("streams", objects.uid(made)))
        through = Way(stage.fleet.kubeconfig(SOURCE), "streams")
        found = [
            Stream(
                what,
                quantiles([await take(straight) for _ in range(_ROUNDS)]),
                quantiles([await take(through) for _ in range(_ROUNDS)]),
            )
            for what, take in (("log", _log), ("exec", _exec))
        ]

    await source.delete(kinds.PODS, "streams", NAMESPACE)
    return found


async def _log(way: Way) -> float:
    """Return the seconds until the last line of a log is there, over a new connection."""
    begun = time.monotonic()
    async with load.opened(way) as (http, url), http.get(f"{url}/log?tailLines=1") as answer:
        answer.raise_for_status()
        await answer.read()

    return time.monotonic() - begun


async def _exec(way: Way) -> float:
    """Return the seconds until a command has ended, over a new connection."""
    begun, query = time.monotonic(), {"container": "main", "command": "true", "stdout": "true"}
    async with (
        load.opened(way) as (http, url),
        http.ws_connect(f"{url}/exec", params=query, protocols=[load.PROTOCOL]) as socket,
    ):
        while (message := await socket.receive_bytes())[0] != load.STATUS:
            pass

    assert b"Success" in message, message
    return time.monotonic() - begun


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 if something failed, or an aim was missed."""
    options = parser().parse_args(argv)
    return running.run(
        "hack/bench-distance",
        measured_fleet(None, _options()),
        lambda measured: measure(measured, options.burst, options.round_trip),
        text,
        options.json,
    )


if __name__ == "__main__":
    sys.exit(main())
