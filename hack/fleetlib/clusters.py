"""Starts one control plane: files first, then etcd and the API server, then their clients."""

from __future__ import annotations

import datetime
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml

from hack.fleetlib import (
    addresses,
    certificates,
    commands,
    kubeconfigs,
    kwok,
    processes,
    state,
)
from hack.fleetlib.api import Api
from hack.fleetlib.errors import FleetError
from hack.fleetlib.state import Process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hack.fleetlib.commands import ClusterSite

READY_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class ControlPlaneOptions:
    """The options of `hack/fleet up` for control planes."""

    nodes: int = 1
    size: kwok.NodeSize = field(default_factory=kwok.NodeSize)
    api_server_arguments: tuple[str, ...] = ()
    controller_manager_arguments: tuple[str, ...] = ()


def site(directory: Path, fleet: state.State, name: str) -> ClusterSite:
    cluster = fleet.cluster(name)
    plan = fleet.plan
    return commands.ClusterSite(
        name=name,
        folder=directory / name,
        address=cluster.address,
        etcd=plan.etcd(cluster.index),
        pod_range=plan.pod_range(cluster.index),
        agents=tuple(plan.replica(cluster.index, number) for number in range(cluster.replicas)),
        service=plan.service(cluster.index) if cluster.replicas > 1 else cluster.address,
        nodes=tuple(
            plan.real_node(cluster.index, number) for number in range(addresses.REAL_NODES)
        ),
    )


def bring_up(
    directory: Path, place: ClusterSite, programs: dict[str, Path], options: ControlPlaneOptions
) -> None:
    """Start a control plane and its nodes; FleetError has the tail of a log."""
    _start(directory, place, "etcd", commands.etcd(place, programs["etcd"]))
    server = commands.api_server(place, programs["kube-apiserver"], options.api_server_arguments)
    _start(directory, place, "kube-apiserver", server)
    api = Api(place.kubeconfig)
    until(directory, place.name, "kube-apiserver", api.ready)
    _start_controllers(directory, place, programs, options)
    names = create_nodes(api, place, options.nodes, options.size)
    if names:
        _start(directory, place, "kwok", commands.kwok(place, programs["kwok"]))
    try:
        api.wait(
            "/api/v1/namespaces/default/serviceaccounts",
            lambda accounts: "default/default" in accounts,
            READY_SECONDS,
        )
        api.wait_for_nodes(names, READY_SECONDS)
    except TimeoutError as error:
        logs = {name: processes.tail(place.file(f"{name}.log")) for name in _BEHIND_READINESS}
        text = "\n".join(f"--- {name}.log\n{log}" for name, log in logs.items())
        raise FleetError(f"{place.name}: {error}\n{text}") from None


_BEHIND_READINESS = ("kube-controller-manager", "kwok")


def _start_controllers(
    directory: Path, place: ClusterSite, programs: dict[str, Path], options: ControlPlaneOptions
) -> None:
    manager = commands.controller_manager(
        place, programs["kube-controller-manager"], options.controller_manager_arguments
    )
    _start(directory, place, "kube-controller-manager", manager)
    scheduler = commands.scheduler(
        place,
        programs["kube-scheduler"],
        place.file("scheduler.yaml"),
        addresses.SCHEDULER,
    )
    _start(directory, place, "kube-scheduler", scheduler)


def _start(directory: Path, place: ClusterSite, process: str, argv: list[str]) -> None:
    definition = Process(argv, place.file(f"{process}.log"))
    processes.start(directory, place.name, process, definition)


def until(directory: Path, name: str, process: str, ready: Callable[[], bool]) -> None:
    """Poll `ready` until it is true; FleetError when the process ends or takes too long."""
    known = state.load(directory).process(name, process)
    deadline = time.monotonic() + READY_SECONDS
    while not ready():
        ended = known.identity is None or known.identity.wait(0.05)
        if ended or time.monotonic() > deadline:
            what = "ended" if ended else f"was not ready within {READY_SECONDS:.0f} s"
            raise FleetError(f"{process} of {name} {what}:\n{processes.tail(known.log)}")


def create_nodes(
    api: Api, place: ClusterSite, count: int, size: kwok.NodeSize, first: int = 0
) -> list[str]:
    """Create kwok nodes, spread over three zones; returns their names."""
    names = [f"{place.name}-node-{first + number}" for number in range(count)]
    for number, name in enumerate(names):
        zone = "abc"[(first + number) % 3]
        api.create_node(kwok.node(name, place.name, place.address, size, zone))
    return names


def write_files(place: ClusterSite, *, usage: bool = False) -> None:
    """Write certificates, kubeconfigs and configuration: all files that a cluster's processes read.

    With `usage`, kwok's nodes tell what their pods use.
    """
    pki = place.folder / "pki"
    pki.mkdir(parents=True)
    (place.folder / "exec").mkdir()
    authority = certificates.authority("kubernetes")
    _write_certificates(place, pki, authority)
    _write_kubeconfigs(place, authority)
    scheduler = commands.scheduler_config(place.file("scheduler.kubeconfig"))
    (place.folder / "scheduler.yaml").write_text(yaml.safe_dump(scheduler))
    (place.folder / "kwok.yaml").write_text(
        kwok.configuration(place.name, place.folder, usage=usage)
    )
    now = datetime.datetime.now(datetime.UTC)
    lines = [f"hello from a pod in {place.name}", "ready to serve"]
    (place.folder / "pods.log").write_text("".join(kwok.log_line(text, now) for text in lines))
    previous = kwok.log_line(f"goodbye from an earlier container in {place.name}", now)
    (place.folder / "pods-previous.log").write_text(previous)


def _write_certificates(
    place: ClusterSite, pki: Path, authority: certificates.CertificateAuthority
) -> None:
    proxy = certificates.authority("front-proxy-ca")
    hosts = [
        place.address,
        addresses.FIRST_SERVICE,
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    pairs = {
        "ca": authority.pair,
        "front-proxy-ca": proxy.pair,
        "apiserver": authority.server("kube-apiserver", hosts),
        "apiserver-kubelet-client": authority.client(
            "kube-apiserver-kubelet-client", certificates.ADMINISTRATORS
        ),
        "front-proxy-client": proxy.client("front-proxy-client"),
        "controller-manager": authority.server("kube-controller-manager", [place.address]),
        "scheduler": authority.server("kube-scheduler", [place.address]),
        "kwok": authority.server("kwok", [place.address]),
        "metrics-server": authority.server("metrics-server", [place.address]),
    }
    for number, address in enumerate(place.nodes):
        name = place.node_name(number)
        pairs[name] = authority.server(name, [address])
    for name, pair in pairs.items():
        certificates.write_pair(pki, name, pair)
    certificates.write_signing_key(pki, "service-accounts")


def _write_kubeconfigs(place: ClusterSite, authority: certificates.CertificateAuthority) -> None:
    users = {
        place.kubeconfig: ("admin", (certificates.ADMINISTRATORS,)),
        place.folder / "controller-manager.kubeconfig": ("system:kube-controller-manager", ()),
        place.folder / "scheduler.kubeconfig": ("system:kube-scheduler", ()),
        place.folder / "kwok.kubeconfig": ("kwok", (certificates.ADMINISTRATORS,)),
        place.folder / "kube-proxy.kubeconfig": ("system:kube-proxy", ()),
        place.folder / "coredns.kubeconfig": ("coredns", (certificates.ADMINISTRATORS,)),
    }
    for number in range(len(place.nodes)):
        name = place.node_name(number)
        users[place.folder / f"{name}.kubeconfig"] = (f"system:node:{name}", ("system:nodes",))
    for file, (user, groups) in users.items():
        pair = authority.client(user, *groups)
        text = kubeconfigs.render(place.name, place.address, user, authority, pair)
        kubeconfigs.write(file, text)
