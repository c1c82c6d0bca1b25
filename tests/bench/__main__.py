"""`python -m tests.bench`: how fast vnode places pods, measured against a plain kube-scheduler.

Starts a fleet of one source and two targets, runs the phases one after the other, and takes the
fleet down again, also after Ctrl-C. As root it then counts the requests of pods on a real kubelet,
in another fleet. The table goes to stdout and, with everything else that was measured, as JSON into
a file; what goes on meanwhile is told on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from hack.fleetlib import clusters, progress
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import FleetOptions
from tests.bench import real_node, report, results, sequence
from tests.bench.figures import BenchmarkRun
from tests.bench.fleet import measured_fleet
from tests.bench.phases import SOURCE, TARGETS
from tests.bench.sequence import CLUSTERS, BenchmarkPlan
from vnode.api.errors import VnodeError


def parser() -> argparse.ArgumentParser:
    """Return the options; there is no need for any."""
    found = results.parser("hack/bench", __doc__)
    found.add_argument(
        "--bursts", type=results.sizes, default=(100, 300, 1000), help="100,300,1000"
    )
    found.add_argument("--nodes", type=int, default=20, help="kwok nodes in each cluster (20)")
    found.add_argument("--vnode-only", action="store_true", help="without the plain scheduler")
    found.add_argument(
        "--real-pods", type=int, default=40, help="at once on a real kubelet, as root (40); 0: none"
    )
    found.add_argument(
        "--fleet", type=Path, metavar="DIR", help="use this running fleet, and leave it running"
    )
    found.add_argument(
        "--profile",
        type=Path,
        metavar="DIR",
        help="record where the agents spend their time in the last burst (needs py-spy)",
    )
    return found


def _options(nodes: int) -> FleetOptions:
    return FleetOptions(
        CLUSTERS,
        clusters.ControlPlaneOptions(nodes=nodes),
        agents=True,
        connections=[(SOURCE, target) for target in TARGETS],
    )


def main(argv: list[str] | None = None) -> int:
    """Measure and print; 1 if something failed, or a pod was lost or bound twice."""
    options = parser().parse_args(argv)
    # A terminated benchmark must take down what it has started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = BenchmarkPlan(options.bursts, plain=not options.vnode_only, profile=options.profile)
    try:
        with measured_fleet(options.fleet, _options(options.nodes)) as measured:
            run = asyncio.run(sequence.measure(measured, plan))

        run = _with_real_node(run, options.real_pods)
    except (FleetError, VnodeError) as error:
        progress.say(f"hack/bench: {error}")
        return 1
    except KeyboardInterrupt:
        return 130

    return conclude(run, options.json)


def _with_real_node(run: BenchmarkRun, pods: int) -> BenchmarkRun:
    if not pods:
        return run

    if os.geteuid() != 0:
        progress.say("requests on a real kubelet are not counted: that takes root")
        return run

    real, failure = real_node.measure(pods)
    return msgspec.structs.replace(run, real=real, real_failure=failure)


def conclude(run: BenchmarkRun, path: Path) -> int:
    """Write and print the results; 1 if a phase failed, or a pod was lost or bound twice."""
    results.save(run, report.text(run), path)
    return 0 if run.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
