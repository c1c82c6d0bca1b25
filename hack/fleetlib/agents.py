"""Puts vnode into clusters of a fleet: install, agent, candidate scheduler, connections.

Everything goes through vnode's command line, as a user would do it.
"""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from hack.fleetlib import addresses, clusters, commands, kubeconfigs, processes, state
from hack.fleetlib.api import Api, is_ready
from hack.fleetlib.errors import FleetError
from hack.fleetlib.state import Process

if TYPE_CHECKING:
    from hack.fleetlib.commands import ClusterSite

AGENT, CANDIDATE_SCHEDULER, SERVICE = "agent", "candidate-scheduler", "service"
CANDIDATE_SCHEDULER_FLAGS = ("--feature-gates=SchedulerAsyncPreemption=false",)
"""As the chart has it for all versions of fleets (decision 140)."""
AGENTS = (AGENT, f"{AGENT}-2")
"""The processes of all replicas, in the order of their addresses."""
NAMESPACE = "vnode"
CONNECTED_SECONDS = 60.0
_TOKEN_SECONDS = 10 * 365 * 24 * 3600  # no fleet lives longer
_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class VnodeTree:
    """The sources of a vnode, and an interpreter with its dependencies: this clone's by default."""

    folder: Path = _REPOSITORY
    python: str = sys.executable

    @property
    def environment(self) -> dict[str, str]:
        """An environment in which `python -m vnode` is this one.

        It is so whatever is installed, and whatever the working directory has.
        """
        found = {"PYTHONPATH": str(self.folder), "PYTHONSAFEPATH": "1"}
        return {**found, "PYTHONUNBUFFERED": "1"}


THIS = VnodeTree()


def vnode(*arguments: str, tree: VnodeTree = THIS) -> str:
    """Run vnode's command line to its end; returns what it prints."""
    command = [tree.python, "-m", "vnode", *arguments]
    done = subprocess.run(
        command,
        env={**os.environ, **tree.environment},
        stdin=subprocess.DEVNULL,  # or it would ask whoever is at the terminal
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        raise FleetError(f"vnode {' '.join(arguments)} failed:\n{done.stderr.strip()}")
    return done.stdout


def install(place: ClusterSite, tree: VnodeTree = THIS) -> None:
    webhook = f"https://{place.service}:{addresses.AGENT_WEBHOOK}"
    vnode("install", "--kubeconfig", str(place.kubeconfig), "--webhook-url", webhook, tree=tree)


def as_service_account(place: ClusterSite, name: str, namespace: str = NAMESPACE) -> str:
    """Write a kubeconfig with the permissions of a service account of `vnode install`."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    spec = {"expirationSeconds": _TOKEN_SECONDS}
    review = Api(place.kubeconfig).call(
        "POST",
        path,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    config = yaml.safe_load(place.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": review["status"]["token"]}
    file = place.folder / f"{name}.kubeconfig"
    kubeconfigs.write(file, yaml.safe_dump(config, sort_keys=False))
    return str(file)


def start_agents(
    directory: Path,
    place: ClusterSite,
    arguments: tuple[str, ...] = (),
    config: dict[str, Any] | None = None,
    tree: VnodeTree = THIS,
) -> None:
    """Start the agents of a cluster, and their load balancer; wait until all are ready.

    `config` has settings of their configuration, which is in `agent.yaml` of the cluster's folder.
    """
    kubeconfig = as_service_account(place, "vnode")
    config = {**(config or {})}
    if len(place.agents) > 1:
        _start_balancer(directory, place)
        config["servingNames"] = [place.service]
    if config:
        arguments = ("--config", _configure(place, config), *arguments)
    for name, address in zip(AGENTS, place.agents, strict=False):
        argv = [tree.python, "-m", "vnode", "agent", "--kubeconfig", kubeconfig]
        argv += ["--cluster-name", place.name, "--advertise-address", address]
        argv += ["--credentials-dir", place.file(_credentials(name)), *arguments]
        definition = Process(argv, place.file(f"{name}.log"), tree.environment)
        processes.start(directory, place.name, name, definition)
    for name in AGENTS[: len(place.agents)]:
        wait_for_agent(directory, place, name)


def _start_balancer(directory: Path, place: ClusterSite) -> None:
    """Start the load balancer for the Service of the agents."""
    argv = [sys.executable, "-m", "hack.fleetlib.balancer", place.service, *place.agents]
    definition = Process(argv, place.file(f"{SERVICE}.log"), THIS.environment)
    processes.start(directory, place.name, SERVICE, definition)
    clusters.until(
        directory,
        place.name,
        SERVICE,
        lambda: answers(place.service, addresses.SERVICE_STATUS),
    )


def _configure(place: ClusterSite, config: dict[str, Any]) -> str:
    """Write the configuration of the agents; return its file."""
    head = {"apiVersion": "vnode.dev/v1alpha1", "kind": "AgentConfiguration"}
    file = place.folder / f"{AGENT}.yaml"
    file.write_text(yaml.safe_dump({**head, **config}, sort_keys=False))
    return str(file)


def _credentials(name: str) -> str:
    return name.replace(AGENT, "credentials")


def wait_for_agent(directory: Path, place: ClusterSite, name: str = AGENT) -> None:
    address = place.agents[AGENTS.index(name)]
    clusters.until(directory, place.name, name, lambda: answers(address, addresses.AGENT_HEALTH))


def answers(address: str, port: int, path: str = "/readyz") -> bool:
    """Tell whether a program says on a port that it is ready."""
    connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def replace_agent(directory: Path, place: ClusterSite, name: str, tree: VnodeTree) -> None:
    """End one replica, start it from another tree with the arguments that it had; wait for it."""
    known = state.load(directory).process(place.name, name)
    processes.stop(directory, place.name, name, signal.SIGTERM)
    argv = [tree.python, *known.argv[1:]]
    definition = replace(known, argv=argv, environment=tree.environment, identity=None)
    processes.start(directory, place.name, name, definition)
    wait_for_agent(directory, place, name)


def start_candidate_scheduler(
    directory: Path, place: ClusterSite, binary: Path, tree: VnodeTree = THIS
) -> None:
    """Start the upstream scheduler that decides over candidates, with the agent as its extender."""
    kubeconfig = as_service_account(place, "vnode-candidate-scheduler")
    printed = vnode(
        "scheduler-config",
        "--extender",
        f"https://{place.service}:{addresses.AGENT_EXTENDER}",
        "--kubeconfig",
        kubeconfig,
        "--credentials-dir",
        place.file(_credentials(AGENT)),
        tree=tree,
    )
    config = place.folder / "candidate-scheduler.yaml"
    config.write_text(yaml.safe_dump(commands.tuned(yaml.safe_load(printed), kubeconfig)))
    argv = commands.scheduler(
        place, binary, str(config), addresses.CANDIDATE_SCHEDULER, CANDIDATE_SCHEDULER_FLAGS
    )
    definition = Process(argv, place.file(f"{CANDIDATE_SCHEDULER}.log"))
    processes.start(directory, place.name, CANDIDATE_SCHEDULER, definition)


def connect(source: ClusterSite, target: ClusterSite, tree: VnodeTree = THIS) -> None:
    """Make `target` a target of `source` in namespace default, and wait for its virtual node."""
    if source.name == target.name:
        vnode("install", "--kubeconfig", str(source.kubeconfig), "--self-targets", tree=tree)

    files = ["--source", str(source.kubeconfig), "--target", str(target.kubeconfig)]
    names = [
        "--name",
        target.name,
        "--cluster-name",
        source.name,
    ]  # the agent may be too young to say
    vnode("connect", *files, "--namespace", "default", *names, tree=tree)
    wait_for_virtual_node(source, virtual_node(target.name))


def wait_for_virtual_node(source: ClusterSite, node: str) -> None:
    """Wait until a virtual node of a source is Ready."""
    try:
        Api(source.kubeconfig).wait(
            "/api/v1/nodes",
            lambda nodes: is_ready(nodes.get(node)),
            CONNECTED_SECONDS,
            {"fieldSelector": f"metadata.name={node}"},
        )
    except TimeoutError:
        log = processes.tail(source.file(f"{AGENT}.log"))
        raise FleetError(
            f"node {node} was not Ready in {source.name} within {CONNECTED_SECONDS:.0f} s; "
            f"{AGENT}.log of {source.name} ends with:\n{log}"
        ) from None


def virtual_node(target: str, namespace: str = "default") -> str:
    """Return the name of the Node that stands for `target` in its source."""
    from vnode.api import names

    return names.virtual_node(namespace, target)
