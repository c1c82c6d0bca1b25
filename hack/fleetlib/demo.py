"""The demo: pods of one cluster that run in two others, and what happens when one of these is lost.

cluster1 is the source, cluster2 and cluster3 are its targets. Everything is real but the nodes,
which kwok plays. `KEEP=1` leaves the clusters up.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hack.fleetlib import agents, api, clusters, fleet, venv
from hack.fleetlib.errors import FleetError
from hack.fleetlib.terminal import Terminal
from hack.fleetlib.tools import binaries

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.fleetlib.api import Object
    from hack.fleetlib.fleet import LocalFleet

SOURCE, TARGETS = "cluster1", ("cluster2", "cluster3")
LOST = TARGETS[1]
REPLICAS = 20
_PODS = "/api/v1/namespaces/default/pods"
_PARENT = "multicluster.admiralty.io/parent-uid"
_WAIT = 120.0

DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: {REPLICAS}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata:
      labels: {{app: web}}
      annotations: {{multicluster.admiralty.io/elect: ""}}
    spec:
      containers:
        - name: web
          image: nginx
          resources: {{requests: {{cpu: 500m, memory: 256Mi}}}}
"""


@dataclass(frozen=True, slots=True)
class DemoContext:
    """What all steps of the demo need."""

    terminal: Terminal
    fleet: LocalFleet
    kubectl: Path

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Run kubectl against the source and return its standard output.

        The command is shown without its `--kubeconfig`. Raise FleetError if it fails.
        """
        kubeconfig = str(self.fleet.kubeconfig(SOURCE))
        done = subprocess.run(
            [str(self.kubectl), "--kubeconfig", kubeconfig, *arguments],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        answer = done.stdout + done.stderr
        shown = " ".join(f"'{word}'" if " " in word else word for word in arguments)
        self.terminal.command(f"kubectl {shown}", answer)
        if done.returncode != 0:
            raise FleetError(f"kubectl {shown} failed")
        return done.stdout


def main() -> int:
    """Run the demo; whatever happens, take the clusters down at the end unless `KEEP` is set."""
    keep = os.environ.get("KEEP", "") not in ("", "0")
    terminal = Terminal()
    directory = Path(tempfile.mkdtemp(prefix="vnode-demo-"))
    # A terminated demo must take its clusters down, as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        _play(terminal, directory)
    except (FleetError, TimeoutError) as error:
        terminal.bad(f"\nThe demo failed: {error}")
        return 1
    except KeyboardInterrupt:
        terminal.line("\nInterrupted.")
        return 130
    finally:
        _end(terminal, directory, keep=keep)
    return 0


def _play(terminal: Terminal, directory: Path) -> None:
    terminal.heading("Three clusters, with an agent of vnode in each")
    kubectl = binaries.locate()["kubectl"]
    options = fleet.FleetOptions(
        names=(SOURCE, *TARGETS),
        clusters=clusters.ControlPlaneOptions(nodes=2),
        agents=True,
        connections=[(SOURCE, target) for target in TARGETS],
    )
    stage = DemoContext(terminal, fleet.up(directory, options), kubectl)
    for scene in (_show_nodes, _deploy, _show_pods, _look_inside, _lose_a_target):
        scene(stage)
    terminal.good("\nThat was it: one Deployment, three clusters, and kubectl as always.")


def _show_nodes(stage: DemoContext) -> None:
    stage.terminal.heading(f"To {SOURCE}, each other cluster is a node")
    nodes = stage.fleet.api(SOURCE).call("GET", "/api/v1/nodes")["items"]
    stage.terminal.table(
        ("NODE", "STATUS", "CPU", "MEMORY", "PODS", "WHAT IT IS"),
        [_node_row(node) for node in nodes],
    )


def _node_row(node: Object) -> tuple[str, ...]:
    name = node["metadata"]["name"]
    free = node["status"].get("allocatable", {})
    numbers = (free.get(resource, "-") for resource in ("cpu", "memory", "pods"))
    virtual = {agents.virtual_node(target): target for target in TARGETS}
    what = f"all of {virtual[name]}" if name in virtual else f"a node of {SOURCE} itself"
    return name, _status(node), *numbers, what


def _status(node: Object) -> str:
    return "Ready" if api.is_ready(node) else "NotReady"


def _deploy(stage: DemoContext) -> None:
    stage.terminal.heading(f"A Deployment of {REPLICAS} replicas, with one annotation")
    stage.run("label", "namespace", "default", "multicluster-scheduler=enabled", "--overwrite")
    stage.terminal.line(DEPLOYMENT.rstrip())
    stage.run("apply", "-f", "-", given=DEPLOYMENT)
    with stage.terminal.waiting("waiting until all run") as wait:

        def all_run(pods: dict[str, Object]) -> bool:
            ready = sum(map(api.is_ready, pods.values()))
            wait.detail = f"{ready} of {REPLICAS}"
            return ready >= REPLICAS

        stage.fleet.api(SOURCE).wait(_PODS, all_run, _WAIT, {"labelSelector": "app=web"})


def _show_pods(stage: DemoContext) -> None:
    stage.terminal.heading("Which pod runs where")
    delegates = {
        pod["metadata"]["labels"].get(_PARENT, ""): (target, pod)
        for target in TARGETS
        for pod in stage.fleet.api(target).call("GET", f"{_PODS}?labelSelector={_PARENT}")["items"]
    }
    rows = []
    for proxy in _proxies(stage):
        target, delegate = delegates.get(proxy["metadata"]["uid"], ("-", {}))
        rows.append(
            (
                proxy["metadata"]["name"],
                proxy["spec"].get("nodeName", "-"),
                target,
                delegate.get("metadata", {}).get("name", "-"),
                delegate.get("spec", {}).get("nodeName", "-"),
            )
        )
    header = (f"POD IN {SOURCE.upper()}", "ITS NODE", "RUNS IN", "AS", "ON")
    stage.terminal.table(header, sorted(rows, key=lambda row: (row[2], row[0])))


def _proxies(stage: DemoContext) -> list[Object]:
    found = stage.fleet.api(SOURCE).call("GET", f"{_PODS}?labelSelector=app%3Dweb")["items"]
    return list(found)


def _look_inside(stage: DemoContext) -> None:
    stage.terminal.heading("kubectl knows nothing of all this, and works")
    pod = _proxies(stage)[0]["metadata"]["name"]
    stage.run("logs", pod)
    stage.run("exec", pod, "--", "sh", "-c", "echo this container is in $CLUSTER")


def _lose_a_target(stage: DemoContext) -> None:
    terminal, node = stage.terminal, agents.virtual_node(LOST)
    how = "unplugging its network"
    if stage.fleet.state().mode == "loopback":
        how = "freezing its API server, because only root can unplug a network"
    terminal.heading(f"{LOST} is lost ({how})")
    stage.fleet.partition(LOST)
    lost = _await_node(stage, node, lambda found: not api.is_ready(found), "NotReady")
    ready = api.condition(lost, "Ready")
    terminal.bad(f"{node} is NotReady: {ready.get('reason')}: {ready.get('message')}")
    _count_running(stage)
    terminal.heading(f"{LOST} comes back")
    stage.fleet.heal(LOST)
    _await_node(stage, node, api.is_ready, "Ready")
    terminal.good(f"{node} is Ready")
    _count_running(stage)


def _await_node(
    stage: DemoContext, name: str, wanted: Callable[[Object], bool], what: str
) -> Object:
    with stage.terminal.waiting(f"waiting until {name} is {what}"):
        nodes = stage.fleet.api(SOURCE).wait(
            "/api/v1/nodes",
            lambda found: name in found and wanted(found[name]),
            _WAIT,
            {"fieldSelector": f"metadata.name={name}"},
        )
    return nodes[name]


def _count_running(stage: DemoContext) -> None:
    proxies = _proxies(stage)
    there = sum(p["spec"].get("nodeName") == agents.virtual_node(LOST) for p in proxies)
    lost = stage.fleet.state().cluster(LOST).partitioned
    kept = "they keep running there" if lost else "all as before"
    stage.terminal.line(f"{len(proxies)} pods, {there} of them in {LOST}: {kept}.")


def _say_what_is_left(terminal: Terminal, running: fleet.LocalFleet) -> None:
    """Print commands to go on with the clusters."""
    programs = (Path(sys.executable).parent, binaries.locate()["kubectl"].parent)
    target = running.kubeconfig(TARGETS[0])
    terminal.heading("The clusters are still up (KEEP=1)")
    for line in (
        f"export PATH={':'.join(map(str, programs))}:$PATH    # vnode and kubectl",
        f"export KUBECONFIG={running.kubeconfig(SOURCE)}",
        "kubectl get pods -o wide",
        "vnode get targets -o wide",
        "vnode explain deployment/web    # how its pods stand; vnode explain POD tells all",
        "vnode dashboard    # all of this in a browser",
        f"vnode doctor --target {target}",
        f"kubectl --kubeconfig {target} get pods    # the same pods as {TARGETS[0]} has them",
        f"{venv.REPOSITORY}/hack/fleet down {running.directory}    # takes the clusters down",
    ):
        terminal.line(f"  {line}")


def _end(terminal: Terminal, directory: Path, *, keep: bool) -> None:
    """Take the clusters down; a second Ctrl-C must not leave half of them."""
    running = fleet.LocalFleet(directory)
    if keep and (directory / "state.json").exists():
        _say_what_is_left(terminal, running)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if (directory / "state.json").exists():
        with terminal.waiting("taking the clusters down"):
            running.down()
    shutil.rmtree(directory, ignore_errors=True)
