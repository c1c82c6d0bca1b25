"""The programs that a real node takes from the machine: which they are, and how they get there.

Debian's packages are enough. They bring services that must not start here, so while apt runs a
`policy-rc.d` forbids it, unless the machine has one already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import cachefolder, progress
from hack.fleetlib.errors import FleetError

if TYPE_CHECKING:
    from collections.abc import Iterator

CNI_FOLDER = Path("/usr/lib/cni")
_PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    str(CNI_FOLDER / "bridge"): "containernetworking-plugins",
    "busybox": "busybox-static",
    "iptables": "iptables",
    "nft": "nftables",
    "unshare": "util-linux",
    "mount": "mount",
    "ip": "iproute2",
}
_POLICY = Path("/usr/sbin/policy-rc.d")


def lacking() -> list[str]:
    """The packages whose programs this machine does not have."""
    return sorted(package for program, package in _PROGRAMS.items() if not shutil.which(program))


def check() -> None:
    """FleetError that names the cure, unless a real node can run on this machine."""
    if os.geteuid() != 0:
        raise FleetError("a real node runs containers: run this as root")
    if missing := lacking():
        raise FleetError(f"a real node needs {', '.join(missing)}: run hack/realnode-packages")


def install() -> None:
    """Install what is lacking; FleetError, with the names, where that cannot be done."""
    if not lacking():
        return
    with cachefolder.locked("apt", lambda: progress.say("waiting for another apt-get ...")):
        if not (missing := lacking()):
            return
        names = ", ".join(missing)
        if os.geteuid() != 0:
            raise FleetError(f"only root can install {names}")
        if shutil.which("apt-get") is None:
            raise FleetError(f"no apt-get here: install what Debian calls {names}")
        with progress.reported(f"installing {names}"), _services_kept_from_starting():
            _apt("update")
            _apt("install", "--yes", "--no-install-recommends", *missing)
    if left := lacking():
        raise FleetError(f"still lacking after apt-get: {', '.join(left)}")


@contextmanager
def _services_kept_from_starting() -> Iterator[None]:
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()


def _apt(*words: str) -> None:
    command = ["apt-get", "--quiet=2", *words]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FleetError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr).strip()}")
