"""Has the kernel run programs of another architecture, for images that are built for it.

QEMU plays the processor; the kernel starts it for programs of that architecture, in containers too,
once it is registered. systemd does that where it runs, which it does not in most containers and on
small machines: there it is done here, from the file that Debian's package brings.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from hack.fleetlib import debian
from hack.fleetlib.errors import FleetError

_KERNEL = Path("/proc/sys/fs/binfmt_misc")
_RULES = Path("/usr/lib/binfmt.d")
_MACHINES = {"arm64": "aarch64", "amd64": "x86_64"}


def ensure(architecture: str, own: str) -> None:
    """Make programs of `architecture`, as Go names it, run here; FleetError if they cannot."""
    if architecture == own:
        return
    if architecture not in _MACHINES:
        raise FleetError(f"no image is built for {architecture}: use one of {', '.join(_MACHINES)}")
    name = f"qemu-{_MACHINES[architecture]}"
    if (_KERNEL / name).exists():
        return
    debian.install({f"{name}-static": "qemu-user-static"})
    if not (_KERNEL / "register").exists():
        _mount()
    if not (_KERNEL / name).exists():
        rule = _RULES / f"{name}.conf"
        try:
            (_KERNEL / "register").write_text(rule.read_text())
        except OSError as error:
            raise FleetError(f"the kernel takes no emulator for {architecture}: {error}") from error


def _mount() -> None:
    if os.geteuid() != 0:
        raise FleetError("only root can have the kernel run programs of another architecture")
    command = ["mount", "-t", "binfmt_misc", "binfmt_misc", str(_KERNEL)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FleetError(f"this kernel runs no other architectures: {done.stderr.strip()}")
