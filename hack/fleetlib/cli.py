"""The command line of `hack/fleet`."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from pathlib import Path

from hack.fleetlib import clusters, fleet, kwok, progress, state
from hack.fleetlib.errors import FleetError
from hack.fleetlib.fleet import FleetOptions, LocalFleet
from hack.fleetlib.realnode import node as realnode
from hack.fleetlib.tools import kubernetes

_DESCRIPTION = """Kubernetes clusters as child processes on this machine: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, and kwok for nodes. As root each cluster has a network
namespace, otherwise a loopback address. DIR/kubeconfig-NAME is for kubectl, DIR/NAME/*.log tells
what happens inside."""


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def parser() -> argparse.ArgumentParser:
    """Make the parser, apart from `main` for the tests."""
    root = argparse.ArgumentParser(prog="hack/fleet", description=_DESCRIPTION)
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_up(commands)
    for name, text in (
        ("down", "end a fleet and remove all that it left"),
        ("status", "show clusters, processes and kubeconfigs"),
    ):
        commands.add_parser(name, help=text).add_argument("directory", type=Path, metavar="DIR")
    commands.choices["down"].add_argument(
        "--logs", type=Path, help="copy the logs to this folder first"
    )
    for name, text in (
        ("stop", "end one process, e.g. agent, kube-apiserver, kwok"),
        ("start", "start it again"),
    ):
        one = _cluster_command(commands, name, text)
        one.add_argument("process", metavar="PROCESS")
    commands.choices["stop"].add_argument("--kill", action="store_true", help="with SIGKILL")
    _cluster_command(commands, "partition", "cut a cluster off from everything else")
    _cluster_command(commands, "heal", "undo partition")
    more = _cluster_command(commands, "add-node", "add kwok nodes to a cluster")
    more.add_argument("--count", type=_count, default=1)
    _add_size(more)
    link = commands.add_parser("connect", help="make one cluster the target of another")
    link.add_argument("directory", type=Path, metavar="DIR")
    link.add_argument("connection", type=connection, metavar="SOURCE:TARGET")
    return root


def _add_up(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = commands.add_parser("up", help="start clusters")
    up.add_argument("directory", type=Path, metavar="DIR", help="state, logs and kubeconfigs")
    up.add_argument("names", nargs="+", metavar="NAME")
    up.add_argument("--nodes", type=_count, default=1, help="kwok nodes in each cluster (1)")
    _add_size(up)
    for option, text in (
        (
            "--real-node",
            "give this cluster a kubelet with containerd, or two (root; hack/realnode-packages)",
        ),
        ("--bare", "run nothing of vnode in this cluster, whatever --agents says"),
    ):
        up.add_argument(
            option,
            action="extend",
            default=[],
            type=lambda text: text.split(","),
            metavar="NAME[,..]",
            help=text,
        )
    up.add_argument(
        "--services",
        action="store_true",
        help="let Services and their names work on real nodes: kube-proxy and CoreDNS",
    )
    up.add_argument(
        "--images",
        type=Path,
        metavar="FOLDER",
        help="an OCI layout whose images real nodes can pull, from any registry and with any tag",
    )
    up.add_argument(
        "--kubernetes",
        action="append",
        default=[],
        metavar="[NAME=]VERSION",
        help="the version of all clusters, or of one, e.g. 1.37 or c2=1.33; repeatable "
        f"({', '.join(kubernetes.VERSIONS)}; usually {kubernetes.DEFAULT})",
    )
    _add_agents(up)
    up.add_argument(
        "--metrics-server",
        action="store_true",
        help="also run metrics-server in each cluster, and let nodes tell what their pods use",
    )
    _add_passed_on(up)


def _add_agents(up: argparse.ArgumentParser) -> None:
    up.add_argument("--agents", action="store_true", help="also run vnode in each cluster")
    up.add_argument(
        "--connect", action="append", default=[], type=connection, metavar="SOURCE:TARGET"
    )
    up.add_argument(
        "--inventory",
        action="store_true",
        help="connect by ClusterProfiles: in each source one for each target, in namespace fleet, "
        "with an exec plugin that reads the Secret of its name, and a ClusterTarget of it",
    )
    up.add_argument("--no-candidate-scheduler", action="store_true")
    up.add_argument(
        "--replicas", type=_count, default=1, help="agents in each cluster, behind one address (1)"
    )


def _add_passed_on(up: argparse.ArgumentParser) -> None:
    for option, who in (
        ("--apiserver-arg", "API server"),
        ("--controller-manager-arg", "controller manager"),
        ("--agent-arg", "agent"),
    ):
        text = f"pass ARG to each {who}; repeatable, write {option}=--flag=value"
        if option == "--apiserver-arg":
            text += "; {folder} in it stands for DIR/NAME"
        up.add_argument(option, action="append", default=[], metavar="ARG", help=text)


def _add_size(command: argparse.ArgumentParser) -> None:
    size = kwok.NodeSize()
    command.add_argument("--node-cpu", default=size.cpu, help=f"cores of a node ({size.cpu})")
    command.add_argument("--node-memory", default=size.memory, help=f"({size.memory})")
    command.add_argument("--node-pods", default=size.pods, help=f"pods that fit ({size.pods})")
    for option, kind, metavar, text in (
        ("--node-resource", assignment, "NAME=AMOUNT", "devices of a node: nvidia.com/gpu=8"),
        ("--node-label", assignment, "KEY=VALUE", "a label of a node"),
        ("--node-taint", taint, "KEY=VALUE:EFFECT", "a taint of a node"),
    ):
        command.add_argument(
            option,
            action="append",
            default=[],
            type=kind,
            metavar=metavar,
            help=f"{text}; repeatable",
        )


def _cluster_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text)
    command.add_argument("directory", type=Path, metavar="DIR")
    command.add_argument("name", metavar="NAME")
    return command


def connection(text: str) -> tuple[str, str]:
    """Parse `SOURCE:TARGET` into a pair; raise ArgumentTypeError if the text has another form."""
    source, colon, target = text.partition(":")
    if not (source and colon and target) or ":" in target:
        raise argparse.ArgumentTypeError(f"{text!r} is not SOURCE:TARGET")
    return source, target


def assignment(text: str) -> tuple[str, str]:
    """Parse `KEY=VALUE` into a pair; raise ArgumentTypeError if the text has another form."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def taint(text: str) -> dict[str, str]:
    """Parse `KEY=VALUE:EFFECT` or `KEY:EFFECT`, as kubectl does."""
    head, colon, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    if not (key and colon) or effect not in _EFFECTS:
        effects = ", ".join(_EFFECTS)
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE:EFFECT, of {effects}")
    return {"key": key, "value": value, "effect": effect}


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return number


def fleet_options(arguments: argparse.Namespace) -> FleetOptions:
    """Make the options of a fleet from the arguments of `up`."""
    return FleetOptions(
        names=arguments.names,
        clusters=clusters.ControlPlaneOptions(
            arguments.nodes,
            _size(arguments),
            tuple(arguments.apiserver_arg),
            tuple(arguments.controller_manager_arg),
        ),
        agents=arguments.agents,
        candidate_scheduler=not arguments.no_candidate_scheduler,
        replicas=arguments.replicas,
        connections=arguments.connect,
        inventory=arguments.inventory,
        agent_arguments=tuple(arguments.agent_arg),
        metrics_server=arguments.metrics_server,
        real_nodes=arguments.real_node,
        bare=arguments.bare,
        real_node=realnode.NodeOptions(services=arguments.services, images=arguments.images),
        kubernetes=kubernetes.assigned(arguments.kubernetes, arguments.names),
    )


def _size(arguments: argparse.Namespace) -> kwok.NodeSize:
    return kwok.NodeSize(
        arguments.node_cpu,
        arguments.node_memory,
        arguments.node_pods,
        dict(arguments.node_resource),
        dict(arguments.node_label),
        arguments.node_taint,
    )


def run(arguments: argparse.Namespace) -> None:
    if arguments.command == "up":
        show(fleet.up(arguments.directory, fleet_options(arguments)))
        return
    known = LocalFleet(arguments.directory.resolve())
    match arguments.command:
        case "down":
            _down(known, arguments.logs)
        case "status":
            show(known)
        case "stop":
            number = signal.SIGKILL if arguments.kill else signal.SIGTERM
            known.stop(arguments.name, arguments.process, number)
        case "start":
            known.start(arguments.name, arguments.process)
        case "partition":
            known.partition(arguments.name)
        case "heal":
            known.heal(arguments.name)
        case "add-node":
            print("\n".join(known.add_nodes(arguments.name, arguments.count, _size(arguments))))
        case "connect":
            known.connect(*arguments.connection)


def _down(known: LocalFleet, logs: Path | None) -> None:
    if logs is not None:
        for log in known.directory.glob("*/*.log"):
            folder = logs / log.parent.name
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(log, folder)
    known.down()


def show(known: LocalFleet) -> None:
    """Print the clusters of a fleet, each with its processes."""
    current: state.State = known.state()
    for cluster in current.clusters.values():
        partitioned = "  PARTITIONED" if cluster.partitioned else ""
        print(f"{cluster.name}  {cluster.address}  Kubernetes {cluster.kubernetes}{partitioned}")
        print(f"  kubeconfig  {known.kubeconfig(cluster.name)}")
        for name, process in cluster.processes.items():
            pid = process.identity.pid if process.identity else "-"
            print(f"  {'running' if process.alive else 'ended':10}  {name} (pid {pid})")


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    # A terminated `up` must take down what it has started, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run(arguments)
    except FleetError as error:
        progress.say(f"hack/fleet: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
