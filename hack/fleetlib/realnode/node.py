"""Starts and stops real nodes: each is a process of a cluster, `real-node`, and its Node.

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
    from hack.fleetlib.api import Object
    from hack.fleetlib.realnode.sites import RealNodeSite

_REPOSITORY = Path(__file__).resolve().parents[3]
_NAMESPACES = ["--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]


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


def start(directory: Path, node: RealNodeSite, options: NodeOptions, version: str) -> None:
    """Write the node's files, start it for the first time, and wait until it is Ready.

    Its kubelet is of the release `version` of Kubernetes.
    """
    found = binaries.locate(options.programs, version)
    _write_files(node, options)
    programs = {
        "containerd": ["containerd", f"--config={node.folder / 'containerd.toml'}"],
        "kubelet": [str(found["kubelet"]), *configs.kubelet_flags(node)],
    }
    if options.services:
        programs |= services.commands(node, found)
    settings = InitSettings(
        name=node.name,
        folder=str(node.folder),
        logs=str(node.cluster.folder),
        cgroup=node.cgroup,
        programs={f"{name}{node.suffix}": argv for name, argv in programs.items()},
        images=str(options.images.resolve()) if options.images else None,
    )
    settings.write(node.folder / "settings.json")
    argv = ["unshare", *_NAMESPACES, sys.executable, "-m", "hack.fleetlib.realnode.init"]
    argv.append(str(node.folder / "settings.json"))
    environment = {"PYTHONPATH": str(_REPOSITORY), "PYTHONUNBUFFERED": "1"}
    definition = Process(argv, node.log(_INIT), environment, netns=node.netns)
    begun = _now()
    processes.start(directory, node.cluster.name, node.process, definition)
    wait(directory, node, begun)


def start_again(directory: Path, node: RealNodeSite) -> None:
    """Start a node that was stopped, and wait until it is Ready."""
    begun = _now()
    processes.start(directory, node.cluster.name, node.process)
    wait(directory, node, begun)


def _write_files(node: RealNodeSite, options: NodeOptions) -> None:
    folder = node.folder
    (folder / "net.d").mkdir(parents=True)
    (folder / "certs.d" / "_default").mkdir(parents=True)
    network = configs.network(node.pod_range)
    kubelet = configs.kubelet(node, names=options.services)
    files = {
        "containerd.toml": configs.containerd(folder),
        "certs.d/_default/hosts.toml": configs.registry_hosts(),
        "net.d/pods.conflist": json.dumps(network, indent=1),
        "firewall.nft": configs.firewall(node.cluster),
        "kubelet.yaml": yaml.safe_dump(kubelet),
        "resolv.conf": "",
    }
    if options.services:
        files |= services.files(node)
    for file, text in files.items():
        (folder / file).write_text(text)


def _now() -> datetime.datetime:
    """Return the current second: heartbeats are not more precise."""
    return datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def wait(directory: Path, node: RealNodeSite, since: datetime.datetime) -> None:
    """Wait until the Node is Ready by a heartbeat after `since`; an older one does not count.

    FleetError, with the ends of the logs, when it takes too long or the process has ended.
    """
    deadline = time.monotonic() + clusters.READY_SECONDS
    while not _ready(node, since):
        ended = not state.load(directory).process(node.cluster.name, node.process).alive
        if ended or time.monotonic() > deadline:
            what = "ended" if ended else f"was not Ready within {clusters.READY_SECONDS:.0f} s"
            logs = [node.log(program) for program in (_INIT, "containerd", "kubelet")]
            text = "\n".join(f"--- {log}\n{processes.tail(log)}" for log in logs)
            raise FleetError(f"the real node {node.name} {what}\n{text}")


def _ready(node: RealNodeSite, since: datetime.datetime) -> bool:
    """Watch for a short time: the caller checks in between whether the process has ended."""
    selector = {"fieldSelector": f"metadata.name={node.name}"}
    try:
        Api(node.cluster.kubeconfig).wait(
            "/api/v1/nodes", lambda nodes: _fresh(nodes.get(node.name), since), _LOOK, selector
        )
    except TimeoutError:
        return False
    return True


_LOOK = 3.0  # seconds between two looks at the process
_INIT = "real-node"


def _fresh(found: Object | None, since: datetime.datetime) -> bool:
    ready = condition(found, "Ready")
    if ready.get("status") != "True":
        return False
    return datetime.datetime.fromisoformat(ready["lastHeartbeatTime"]) >= since


def remove(node: RealNodeSite) -> None:
    """Take away what outlives the processes of a node that has been ended."""
    cgroups.remove(node.cgroup)
