"""Names the programs that a real node takes from the machine, which Debian has."""

from __future__ import annotations

import os
from pathlib import Path

from hack.fleetlib import debian
from hack.fleetlib.errors import FleetError

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


def check() -> None:
    """Raise FleetError, which names the cure, unless a real node can run on this machine."""
    if os.geteuid() != 0:
        raise FleetError("a real node runs containers: run this as root")
    if missing := debian.lacking(_PROGRAMS):
        raise FleetError(f"a real node needs {', '.join(missing)}: run hack/realnode-packages")


def install() -> None:
    """Install what is lacking; FleetError, with the names, where that cannot be done."""
    debian.install(_PROGRAMS)
