"""Starts programs that outlive this one, and ends them again by identity, never by name."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import identity, state
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hack.fleetlib.state import Process

GRACE = 10.0


def in_network(netns: str | None, argv: list[str]) -> list[str]:
    """Return the command line that runs `argv` in a network namespace, if there is one.

    nsenter replaces itself by the program, so the pid is the program's; `ip netns exec` would also
    change the mounts of /sys, which containers need.
    """
    if netns is None:
        return argv
    return ["nsenter", f"--net=/run/netns/{netns}", *argv]


def start(directory: Path, name: str, process: str, definition: Process | None = None) -> None:
    """Start a process of a cluster and record it; with `definition` for the first time."""
    with state.changing(directory) as fleet:
        if fleet.ending:
            raise FleetError("the fleet is being taken down")
        cluster = fleet.cluster(name)
        if definition is not None:
            cluster.processes[process] = definition
        known = fleet.process(name, process)
        if known.alive:
            raise FleetError(f"{process} of {name} already runs")
        argv = in_network(known.netns or cluster.netns, known.argv)
        known.identity = identity.of(_spawn(argv, known))


def _spawn(argv: list[str], process: Process) -> int:
    program = shutil.which(argv[0])
    if program is None:
        raise FleetError(f"{argv[0]} is not on PATH")
    with Path(process.log).open("ab") as log:
        # Not os.posix_spawn: interpreters that are built for any Linux have it without setsid.
        spawned = subprocess.Popen(
            argv,
            executable=program,
            env={**os.environ, **process.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    spawned.returncode = 0  # nobody waits for it here: without this, Popen would warn
    return spawned.pid


def stop(directory: Path, name: str, process: str, number: signal.Signals) -> None:
    """Signal a process and wait for its end; SIGKILL when it takes too long."""
    known = state.load(directory).process(name, process)
    end([known], number)


def end(processes: Iterable[Process], number: signal.Signals = signal.SIGTERM) -> None:
    """Signal all of `processes` at once, kill what is left after a while. Frozen ones end too."""
    running = [p.identity for p in processes if p.identity is not None]
    for one in running:
        if one.send(number):
            one.send(signal.SIGCONT)
    deadline = time.monotonic() + GRACE
    for one in running:
        if not one.wait(max(0.0, deadline - time.monotonic())):
            one.send(signal.SIGKILL)
            one.wait(GRACE)


def tail(log: str, lines: int = 15) -> str:
    """Return the last lines of a log file, for an error message."""
    try:
        return "\n".join(Path(log).read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"
