"""Gives a benchmark the fleet to measure: one that runs already, or its own, taken down after."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.fleetlib import clusters, fleet, progress
from hack.fleetlib.fleet import FleetOptions, LocalFleet
from tests.realnode.cluster import SOURCE, TARGET

REAL_NODE = FleetOptions(
    (SOURCE, TARGET),
    clusters.ControlPlaneOptions(nodes=0),
    agents=True,
    connections=[(SOURCE, TARGET)],
    real_nodes=[TARGET],
)
"""A source, and a target whose one node is real."""


@contextmanager
def measured_fleet(directory: Path | None, options: FleetOptions) -> Iterator[LocalFleet]:
    """Yield the fleet in `directory`, or one with `options` that is taken down afterwards."""
    if directory is not None:
        yield LocalFleet(directory.resolve())
        return

    with tempfile.TemporaryDirectory(prefix="vnode-bench-") as folder:
        started = fleet.up(Path(folder) / "fleet", options)
        try:
            yield started
        finally:
            # A second Ctrl-C must not leave processes behind.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            progress.say("taking the fleet down ...")
            started.down()
