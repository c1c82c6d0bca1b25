"""Starts and stops real nodes: a process of a cluster, `real-node`, and its Node.

`hack/fleet stop` and `start` work on it as on any process; a stop is like pulling the plug.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hack.fleetlib import addresses, clusters, processes, state
from hack.fleetlib.api import Api, condition
from hack.fleetlib.errors import FleetError
from hack.fleetlib.realnode import cgroups, configs, packages, services
from hack.fleetlib.realnode.init import InitSettings
from hack.fleetlib.state import Process
from hack.fleetlib.tools import binaries

if TYPE_CHECKING:
    from hack.fleetlib.addresses import AddressPlan
    from hack.fleetlib.api import Object
    from hack.fleetlib.commands import ClusterSite

PROCESS = "real-node"
_REPOSITORY = Path(__file__).resolve().parents[3]
_NAMESPACES = ["--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]


def cgroup(plan: AddressPlan, index: int) -> str:
    """Return the name of a node's cgroups: unique on this machine, as the fleet's links are."""
    return f"{plan.prefix}-{index}"


def check(mode: addresses.Mode) -> None:
    """Raise FleetError, which names the cure, unless real nodes can run here; call it first."""
    packages.check()
    if mode != "netns":
        raise FleetError("a real node needs network namespaces: unset VNODE_FLEET_NETWORK")


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The options of `hack/fleet up` for real nodes."""

    services: bool = False
    images: Path | None = None

    @property
    def programs(self) -> list[str]:
        """Return the names of the programs that it needs, besides Debian's."""
        return ["kubelet", *(services.PROGRAMS if self.services else ())]

    def check(self) -> None:
        """Raise FleetError unless the images exist."""
        if self.images is not None and not (self.images / "index.json").exists():
            raise FleetError(f"{self.images} is no OCI layout: it has no index.json")


def start(directory: Path, place: ClusterSite, own_cgroup: str, options: NodeOptions) -> None:
    """Write the node's files, start it for the first time, and wait until it is Ready."""
    found = binaries.locate(options.programs)
    folder = place.folder / PROCESS
    _write_files(place, folder, own_cgroup, options)
    name = clusters.real_node(place.name)
    programs = {"kubelet": [str(found["kubelet"]), *configs.kubelet_flags(place, folder, name)]}
    if options.services:
        programs |= services.commands(folder, found)
    settings = InitSettings(
        name=name,
        folder=str(folder),
        logs=str(place.folder),
        cgroup=own_cgroup,
        programs=programs,
        images=str(options.images.resolve()) if options.images else None,
    )
    settings.write(folder / "settings.json")
    argv = ["unshare", *_NAMESPACES, sys.executable, "-m", "hack.fleetlib.realnode.init"]
    argv.append(str(folder / "settings.json"))
    environment = {"PYTHONPATH": str(_REPOSITORY), "PYTHONUNBUFFERED": "1"}
    definition = Process(argv, place.file(f"{PROCESS}.log"), environment)
    begun = _now()
    processes.start(directory, place.name, PROCESS, definition)
    wait(directory, place, begun)


def start_again(directory: Path, place: ClusterSite) -> None:
    """Start a node that was stopped, and wait until it is Ready."""
    begun = _now()
    processes.start(directory, place.name, PROCESS)
    wait(directory, place, begun)


def _write_files(place: ClusterSite, folder: Path, own_cgroup: str, options: NodeOptions) -> None:
    (folder / "net.d").mkdir(parents=True)
    (folder / "certs.d" / "_default").mkdir(parents=True)
    pods = configs.pod_range(place)
    network = configs.network(pods)
    kubelet = configs.kubelet(place, folder, own_cgroup, names=options.services)
    files = {
        "containerd.toml": configs.containerd(folder),
        "certs.d/_default/hosts.toml": configs.registry_hosts(),
        "net.d/pods.conflist": json.dumps(network, indent=1),
        "firewall.nft": configs.firewall(place),
        "kubelet.yaml": yaml.safe_dump(kubelet),
        "resolv.conf": "",
    }
    if options.services:
        files |= services.files(place, pods, clusters.real_node(place.name))
    for file, text in files.items():
        (folder / file).write_text(text)


def _now() -> datetime.datetime:
    """Return the current second: heartbeats are not more precise."""
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def wait(directory: Path, place: ClusterSite, since: datetime.datetime) -> None:
    """Wait until the Node is Ready by a heartbeat after `since`; an older one does not count.

    FleetError, with the ends of the logs, when it takes too long or the process has ended.
    """
    deadline = time.monotonic() + clusters.READY_SECONDS
    while not _ready(place, since):
        ended = not state.load(directory).process(place.name, PROCESS).alive
        if ended or time.monotonic() > deadline:
            what = "ended" if ended else f"was not Ready within {clusters.READY_SECONDS:.0f} s"
            logs = {log: processes.tail(place.file(f"{log}.log")) for log in _LOGS}
            text = "\n".join(f"--- {log}.log\n{tail}" for log, tail in logs.items())
            raise FleetError(f"the real node of {place.name} {what}\n{text}")


def _ready(place: ClusterSite, since: datetime.datetime) -> bool:
    """Watch for a short time: the caller checks in between whether the process has ended."""
    name = clusters.real_node(place.name)
    selector = {"fieldSelector": f"metadata.name={name}"}
    try:
        Api(place.kubeconfig).wait(
            "/api/v1/nodes", lambda nodes: _fresh(nodes.get(name), since), _LOOK, selector
        )
    except TimeoutError:
        return False
    return True


_LOOK = 3.0  # seconds between two looks at the process
_LOGS = (PROCESS, "containerd", "kubelet")


def _fresh(node: Object | None, since: datetime.datetime) -> bool:
    ready = condition(node, "Ready")
    if ready.get("status") != "True":
        return False
    return datetime.datetime.fromisoformat(ready["lastHeartbeatTime"]) >= since


def remove(own_cgroup: str) -> None:
    """Take away what outlives the processes of a node that has been ended."""
    cgroups.remove(own_cgroup)
