"""PID 1 of a real node: `python -m hack.fleetlib.realnode.init FILE`.

Started in new mount, PID, IPC and UTS namespaces and in the cluster's network. A start is like a
boot: what ran before is gone, what was stored stays. Its end ends the node.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.fleetlib import progress
from hack.fleetlib.realnode import cgroups, images, mounts, registry

_PAUSE = 1.0  # seconds before a program that ended is started again


@dataclass(frozen=True, slots=True)
class InitSettings:
    """What `node` passes to this program."""

    name: str
    folder: str
    logs: str
    cgroup: str
    programs: dict[str, list[str]]
    """What runs there, each with its command line, by the names of their logs."""
    images: str | None
    """An OCI layout whose images the node can have besides its own."""

    def write(self, file: Path) -> None:
        file.write_text(json.dumps(asdict(self), indent=1))


def run(settings: InitSettings) -> None:
    """Make the node and keep it running until this process is ended."""
    folder = Path(settings.folder)
    socket.sethostname(settings.name)
    cgroups.remove(settings.cgroup)
    cgroups.create(settings.cgroup)
    _reset_network(folder)
    mounts.arrange(folder)
    busybox = shutil.which("busybox")
    assert busybox is not None, "checked before the start"
    served = images.from_busybox(Path(busybox))
    if settings.images is not None:
        served |= images.from_layout(Path(settings.images))
    registry.serve(served)
    _keep_running(settings.programs, Path(settings.logs))


def _reset_network(folder: Path) -> None:
    """Forget the pods of an earlier start: their addresses, their bridge, their rules."""
    shutil.rmtree(folder / "lib" / "cni", ignore_errors=True)
    subprocess.run(["ip", "link", "delete", "cni0"], stderr=subprocess.DEVNULL, check=False)
    subprocess.run(["nft", "--file", str(folder / "firewall.nft")], check=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _keep_running(programs: dict[str, list[str]], logs: Path) -> None:
    """Start all, reap everything, and start again what ends."""
    running = {_spawn(name, argv, logs): name for name, argv in programs.items()}
    while True:
        pid, status = os.wait()
        if name := running.pop(pid, None):
            code = os.waitstatus_to_exitcode(status)
            progress.say(f"{name} ended with {code}; starting it again")
            time.sleep(_PAUSE)
            running[_spawn(name, programs[name], logs)] = name


def _spawn(name: str, argv: list[str], logs: Path) -> int:
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    return os.posix_spawnp(
        argv[0],
        argv,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, str(logs / f"{name}.log"), append, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )


if __name__ == "__main__":
    # PID 1 hears no signal that it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    run(InitSettings(**json.loads(Path(sys.argv[1]).read_text())))
