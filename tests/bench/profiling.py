"""Records where the agents spend their time, by py-spy, which samples them from outside."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.fleetlib import agents
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import LocalFleet

_RATE = 50  # samples a second; more of them, and py-spy takes what it is to measure


@contextmanager
def recorded(fleet: LocalFleet, directory: Path | None) -> Iterator[None]:
    """Write `DIRECTORY/CLUSTER.folded` for each agent, a line for each stack with its samples.

    Nothing happens if no directory is named. FleetError if there is no py-spy.
    """
    if directory is None:
        yield
        return

    program = shutil.which("py-spy") or shutil.which("py-spy", path=Path(sys.executable).parent)
    if program is None:
        raise FleetError("--profile needs py-spy on PATH: pip install py-spy")

    directory.mkdir(parents=True, exist_ok=True)
    recorders = [
        _start(_command(program, fleet, name, directory)) for name in fleet.state().clusters
    ]
    try:
        yield
    finally:
        for recorder in recorders:
            recorder.send_signal(signal.SIGINT)

        for recorder in recorders:
            recorder.wait(60)


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _command(program: str, fleet: LocalFleet, name: str, directory: Path) -> list[str]:
    identity = fleet.state().process(name, agents.AGENT).identity
    assert identity is not None
    output = str(directory / f"{name}.folded")
    # The agent is not stopped for a sample: it must keep its lease.
    options = ["--rate", str(_RATE), "--format", "raw", "--duration", "unlimited", "--nonblocking"]
    return [program, "record", "--pid", str(identity.pid), "--output", output, *options]
