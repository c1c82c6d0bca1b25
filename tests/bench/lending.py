"""The fleet that a benchmark measures: one that runs already, or its own, ended with it."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.fleetlib import fleet, progress
from hack.fleetlib.fleet import Fleet, Wishes


@contextmanager
def lent_fleet(directory: Path | None, options: Wishes) -> Iterator[Fleet]:
    """The fleet in `directory`, or else one as wished that is taken down at the end."""
    if directory is not None:
        yield Fleet(directory.resolve())
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
