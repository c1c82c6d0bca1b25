"""What a fleet consists of, in `DIR/state.json`: read and changed by every command, under a lock.

Invariant: a process, namespace or claim is in the file before or at the moment it exists, so that
`down` after a crash of `up` still finds it.
"""

from __future__ import annotations

import fcntl
import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from hack.fleetlib.addresses import AddressPlan, Mode
from hack.fleetlib.errors import FleetError
from hack.fleetlib.identity import ProcessIdentity
from hack.fleetlib.tools import kubernetes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(slots=True)
class Process:
    """A program of a cluster: how it is started again, and which process it is while it runs."""

    argv: list[str]
    log: str
    environment: dict[str, str] = field(default_factory=dict)
    identity: ProcessIdentity | None = None
    netns: str | None = None  # if it is not that of its cluster

    @property
    def alive(self) -> bool:
        return self.identity is not None and self.identity.alive


@dataclass(slots=True)
class Cluster:
    name: str
    index: int
    address: str
    netns: str | None
    partitioned: bool = False
    replicas: int = 1  # agents
    kubernetes: str = kubernetes.DEFAULT  # its release
    processes: dict[str, Process] = field(default_factory=dict)


@dataclass(slots=True)
class State:
    mode: Mode
    slot: int
    claim: str
    clusters: dict[str, Cluster] = field(default_factory=dict)
    ending: bool = False

    @property
    def plan(self) -> AddressPlan:
        return AddressPlan(self.mode, self.slot)

    def cluster(self, name: str) -> Cluster:
        try:
            return self.clusters[name]
        except KeyError:
            known = ", ".join(self.clusters)
            raise FleetError(f"no cluster {name!r} in this fleet; it has {known}") from None

    def process(self, name: str, process: str) -> Process:
        cluster = self.cluster(name)
        try:
            return cluster.processes[process]
        except KeyError:
            known = ", ".join(cluster.processes)
            raise FleetError(f"{name} has no process {process!r}; it has {known}") from None


def path(directory: Path) -> Path:
    return directory / "state.json"


def encode(state: State) -> str:
    return json.dumps(asdict(state), indent=1)


def decode(text: str) -> State:
    data = json.loads(text)
    clusters = {name: _cluster(value) for name, value in data.pop("clusters").items()}
    return State(**data, clusters=clusters)


def _cluster(data: dict[str, Any]) -> Cluster:
    processes = {name: _process(value) for name, value in data.pop("processes").items()}
    return Cluster(**data, processes=processes)


def _process(data: dict[str, Any]) -> Process:
    identity = data.pop("identity")
    return Process(**data, identity=ProcessIdentity(**identity) if identity else None)


def load(directory: Path) -> State:
    """Return the fleet in `directory`; FleetError when there is none."""
    try:
        return decode(path(directory).read_text())
    except FileNotFoundError:
        raise _missing(directory) from None


def save(directory: Path, state: State) -> None:
    """Replace the file atomically. For changes to a fleet that exists, use `changing`."""
    fresh = directory / ".state.json.new"
    fresh.write_text(encode(state))
    fresh.replace(path(directory))


@contextmanager
def changing(directory: Path) -> Iterator[State]:
    """Read the state, let the caller change it, and write it back; one caller at a time."""
    if not directory.is_dir():
        raise _missing(directory)

    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = load(directory)
        yield state
        save(directory, state)


def _missing(directory: Path) -> FleetError:
    return FleetError(f"no fleet in {directory}: start one with hack/fleet up")
