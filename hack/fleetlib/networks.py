"""The network of a fleet: a namespace for each cluster, all on one bridge, when we may make them.

The bridge sits in a namespace of its own (the hub) together with one link to the machine. So no
packet between clusters passes the machine's firewall, which Docker and others set to drop, and
deleting the namespaces deletes every link.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import addresses
from hack.fleetlib.errors import FleetError
from hack.fleetlib.progress import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.fleetlib.addresses import AddressPlan, Mode

_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21


def mode(environ: Mapping[str, str] = os.environ) -> Mode:
    """Return `netns` if this machine can make network namespaces, else `loopback`.

    `$VNODE_FLEET_NETWORK` overrides that. Raise FleetError if it is `netns` where none can be made.
    """
    wanted = environ.get("VNODE_FLEET_NETWORK")
    if wanted == "loopback":
        return "loopback"
    able = _may_make_namespaces()
    if wanted == "netns" and not able:
        raise FleetError("VNODE_FLEET_NETWORK=netns needs root, iproute2 and nsenter")
    return "netns" if able else "loopback"


def _may_make_namespaces() -> bool:
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
        return False
    status = Path("/proc/self/status").read_text()
    effective = int(status.partition("CapEff:")[2].split()[0], 16)
    return bool(effective >> _CAP_NET_ADMIN & 1 and effective >> _CAP_SYS_ADMIN & 1)


def claim(directory: Path, wanted: Mode) -> tuple[AddressPlan, Path]:
    """Take a free slot for the fleet in `directory`; the claim file is removed with the fleet.

    A claim whose fleet has gone (its directory was deleted by hand) is taken over.
    """
    first = addresses.preferred_slot(directory)
    for step in range(addresses.SLOTS):
        plan = addresses.AddressPlan(wanted, (first + step) % addresses.SLOTS)
        file = Path(tempfile.gettempdir()) / f"vnode-fleet-{os.geteuid()}-{plan.slot}"
        if _take(file, directory) and _free(plan):
            return plan, file
    raise FleetError("all 256 address ranges for fleets are taken; take some fleets down")


def _take(file: Path, directory: Path) -> bool:
    try:
        with file.open("x") as claimed:
            claimed.write(str(directory))
    except FileExistsError:
        owner = Path(file.read_text() or "/nonexistent")
        if owner != directory and (owner / "state.json").exists():
            return False
        file.write_text(str(directory))
    except PermissionError:
        return False
    return True


def _free(plan: AddressPlan) -> bool:
    if plan.mode == "netns":
        return not Path(f"/run/netns/{plan.hub}").exists()
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((plan.cluster(0), addresses.API_SERVER))
        return True
    return False


def create(plan: AddressPlan, clusters: int) -> None:
    """Make the hub and the namespaces of all clusters; nothing for loopback addresses."""
    if plan.mode == "loopback":
        return
    allow_watches()
    for name in [plan.hub, *_namespaces(plan, clusters)]:
        _ip("netns", "add", name)
    _batch(plan.hub, ["link set lo up", "link add fleet type bridge", "link set fleet up"])
    _connect_host(plan)
    for index in range(clusters):
        _connect_cluster(plan, index)


def add_node(plan: AddressPlan, index: int, pods: Sequence[str]) -> None:
    """Make the network of a cluster's second real node, which reaches the pods of both.

    `pods` has the ranges of the first and of the second.
    """
    own, second = plan.netns(index) or "", plan.second_netns(index)
    here, there = plan.real_node(index, 0), plan.real_node(index, 1)
    _ip("netns", "add", second)
    _join(plan, f"n{index}", second, [there])
    route(own, pods[1], there)
    route(second, pods[0], here)


def route(netns: str, range_: str, gateway: str) -> None:
    """Have a network namespace reach a range of addresses by way of `gateway`."""
    _ip("-n", netns, "route", "add", range_, "via", gateway)


def allow_watches(minimum: int = 1024) -> None:
    """Raise the kernel's limit of inotify instances if it is low: a cluster takes eight.

    It is often 128 for all of a user's processes, and `kubectl logs -f` is what fails beyond. The
    new limit stays: what else relies on it by now cannot be known.
    """
    setting = Path("/proc/sys/fs/inotify/max_user_instances")
    with contextlib.suppress(OSError):
        if int(setting.read_text()) < minimum:
            setting.write_text(str(minimum))
            say(f"raised fs.inotify.max_user_instances to {minimum}")


def _namespaces(plan: AddressPlan, clusters: int) -> list[str]:
    return [name for index in range(clusters) if (name := plan.netns(index))]


def _connect_host(plan: AddressPlan) -> None:
    link = f"{plan.prefix}-host"
    _ip("link", "add", link, "type", "veth", "peer", "name", "host", "netns", plan.hub)
    _batch(plan.hub, ["link set host master fleet", "link set host up"])
    _ip("address", "add", f"{plan.host}/24", "dev", link)
    _ip("link", "set", link, "up")


def _connect_cluster(plan: AddressPlan, index: int) -> None:
    # Packets leave with the first address; those of replicas and the service are only called.
    own = [plan.replica(index, number) for number in range(addresses.REPLICAS)]
    _join(plan, f"c{index}", plan.netns(index) or "", [*own, plan.service(index)])


def _join(plan: AddressPlan, name: str, netns: str, own: Sequence[str]) -> None:
    """Join a namespace to the bridge, where its link has this `name`, and give it addresses."""
    peer = ["type", "veth", "peer", "name", "eth0", "netns", netns]
    _ip("-n", plan.hub, "link", "add", name, *peer)
    _batch(plan.hub, [f"link set {name} master fleet", f"link set {name} up"])
    given = [f"address add {address}/24 dev eth0" for address in own]
    default = f"route add default via {plan.host}"
    _batch(netns, ["link set lo up", *given, "link set eth0 up", default])


def link(plan: AddressPlan, index: int, *, up: bool) -> None:
    """Set a cluster's link up or down, at the bridge: inside the cluster nothing changes."""
    _ip("-n", plan.hub, "link", "set", f"c{index}", "up" if up else "down")


def remove(plan: AddressPlan, clusters: int) -> None:
    """Delete what `create` made, as far as it is there."""
    if plan.mode == "loopback":
        return
    second = [plan.second_netns(index) for index in range(clusters)]
    for name in [*second, *_namespaces(plan, clusters), plan.hub]:
        if Path(f"/run/netns/{name}").exists():
            _end_strays(name)
            _ip("netns", "delete", name)


def _end_strays(netns: str) -> None:
    """Kill what still runs in a namespace: only processes of ours are in it."""
    for pid in _ip("netns", "pids", netns).split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def _ip(*arguments: str, given: str | None = None) -> str:
    command = ["ip", *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FleetError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return done.stdout


def _batch(netns: str, lines: list[str]) -> None:
    _ip("-n", netns, "-batch", "-", given="\n".join(lines) + "\n")
